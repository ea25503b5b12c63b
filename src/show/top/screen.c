/*
 * The terminal through ncurses; see screen.h.
 *
 * Giving the terminal back after a crash must not rely on anything that may be broken then: what to
 * send and the settings to restore are prepared when the screen is opened, and the handler only
 * calls write() and tcsetattr().
 */
#include "show/top/screen.h"

#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "base/memory.h"
#include "show/top/keys.h"

#define TEXT_CHARS 1024

#undef lines /* term.h has names for everything */
#undef columns

static const int crash_signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

static struct {
    SCREEN *screen;
    bool is_open, colours, unicode;
    struct termios before;
    char farewell[256]; /* ends the full-screen mode */
    size_t farewell_bytes;
} tty;

int fm_screen_check(struct fm_error *err)
{
    const char *term = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return fm_error_set(err, FM_USAGE,
                            "this is a live view and needs a terminal; without one, `fathom dump` "
                            "shows the stacks of now and `fathom attach` records");
    if (!term || !*term || strcmp(term, "dumb") == 0)
        return fm_error_set(err, FM_USAGE,
                            "the terminal (TERM=%s) cannot move its cursor; `fathom dump` shows "
                            "the stacks of now and `fathom attach` records",
                            term ? term : "");
    return 0;
}

/* Add a terminal's control string without the delays ("$<5>") that some contain. */
static void add_farewell(const char *capability)
{
    const char *text = tigetstr((char *)capability);
    if (!text || text == (char *)-1)
        return;
    for (; *text && tty.farewell_bytes < sizeof tty.farewell; text++) {
        if (text[0] == '$' && text[1] == '<') {
            while (*text && *text != '>')
                text++;
            if (!*text)
                return;
        } else {
            tty.farewell[tty.farewell_bytes++] = *text;
        }
    }
}

static void on_crash(int signal)
{
    if (tty.is_open) {
        ssize_t n = write(STDOUT_FILENO, tty.farewell, tty.farewell_bytes);
        (void)n;
        tcsetattr(STDIN_FILENO, TCSANOW, &tty.before);
    }
    raise(signal); /* SA_RESETHAND: now it does what it always did */
}

static void catch_crashes(void)
{
    struct sigaction action = { .sa_handler = on_crash, .sa_flags = SA_RESETHAND | SA_NODEFER };
    for (size_t i = 0; i < FM_COUNT(crash_signals); i++)
        sigaction(crash_signals[i], &action, NULL);
}

static void forget_crashes(void)
{
    for (size_t i = 0; i < FM_COUNT(crash_signals); i++)
        signal(crash_signals[i], SIG_DFL);
}

/* Does the user's own locale have more than ASCII? The command's is always UTF-8. */
static bool locale_is_utf8(void)
{
    locale_t own = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!own)
        return false;
    bool utf8 = strcmp(nl_langinfo_l(CODESET, own), "UTF-8") == 0;
    freelocale(own);
    return utf8;
}

static void choose_colours(void)
{
    const char *no_color = getenv("NO_COLOR");
    tty.colours = has_colors() && !(no_color && *no_color);
    if (!tty.colours)
        return;
    start_color();
    use_default_colors();
    init_pair(FM_LOOK_WARNING, COLOR_YELLOW, -1);
    init_pair(FM_LOOK_NAME, COLOR_CYAN, -1);
    init_pair(FM_LOOK_HEAT2, COLOR_GREEN, -1);
    init_pair(FM_LOOK_HEAT3, COLOR_YELLOW, -1);
    init_pair(FM_LOOK_HEAT4, COLOR_RED, -1);
    for (int s = 0; s < FM_STATE_COUNT; s++) {
        enum fm_ansi color = fm_state_info((enum fm_state)s)->ansi;
        init_pair((short)fm_look_of_state((enum fm_state)s),
                  color == FM_ANSI_DIM ? -1 : (short)color, -1);
    }
}

int fm_screen_open(struct fm_error *err)
{
    if (fm_screen_check(err) < 0)
        return err->status;
    tcgetattr(STDIN_FILENO, &tty.before);
    set_escdelay(25); /* Escape is a key here, and over ssh its sequences arrive in one piece */
    tty.screen = newterm(NULL, stdout, stdin);
    if (!tty.screen)
        return fm_error_set(err, FM_USAGE,
                            "nothing is known about the terminal TERM=%s; try TERM=xterm, or "
                            "`fathom dump`, or `fathom attach`",
                            getenv("TERM"));
    set_term(tty.screen);
    tty.farewell_bytes = 0;
    add_farewell("sgr0");
    add_farewell("rmkx");
    add_farewell("cnorm");
    add_farewell("rmcup");
    tty.unicode = locale_is_utf8();
    tty.is_open = true;
    catch_crashes();
    choose_colours();
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    return 0;
}

void fm_screen_close(void)
{
    if (!tty.is_open)
        return;
    tty.is_open = false;
    curs_set(1);
    endwin();
    delscreen(tty.screen);
    tty.screen = NULL;
    forget_crashes();
}

void fm_screen_resize(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
        resizeterm(size.ws_row, size.ws_col);
    clearok(curscr, TRUE);
}

int fm_screen_rows(void)
{
    return getmaxy(stdscr);
}

int fm_screen_columns(void)
{
    return getmaxx(stdscr);
}

bool fm_screen_has_unicode(void)
{
    return tty.unicode;
}

uint32_t fm_screen_key(void)
{
    static const struct {
        wint_t from;
        uint32_t to;
    } keys[] = {
        { KEY_UP, FM_KEY_UP },         { KEY_DOWN, FM_KEY_DOWN },
        { KEY_LEFT, FM_KEY_LEFT },     { KEY_RIGHT, FM_KEY_RIGHT },
        { KEY_PPAGE, FM_KEY_PAGE_UP }, { KEY_NPAGE, FM_KEY_PAGE_DOWN },
        { KEY_HOME, FM_KEY_HOME },     { KEY_END, FM_KEY_END },
        { KEY_ENTER, FM_KEY_ENTER },   { KEY_BACKSPACE, FM_KEY_BACKSPACE },
        { KEY_FIND, FM_KEY_HOME },     { KEY_SELECT, FM_KEY_END },
    };
    wint_t c;
    for (;;) {
        int kind = get_wch(&c);
        if (kind == OK)
            return c;
        if (kind != KEY_CODE_YES)
            return FM_KEY_NONE;
        for (size_t i = 0; i < FM_COUNT(keys); i++)
            if (keys[i].from == c)
                return keys[i].to;
    }
}

void fm_screen_clear(void)
{
    erase();
}

void fm_screen_show(void)
{
    refresh();
}

void fm_screen_redraw(void)
{
    clearok(curscr, TRUE);
}

static attr_t attributes(enum fm_look look)
{
    switch (look) {
    case FM_LOOK_DIM:
        return A_DIM;
    case FM_LOOK_BOLD:
        return A_BOLD;
    case FM_LOOK_TITLE:
    case FM_LOOK_SELECTED:
        return A_REVERSE;
    case FM_LOOK_WARNING:
        return tty.colours ? 0 : A_BOLD;
    case FM_LOOK_HEAT4:
        return A_BOLD;
    default:
        return look >= FM_LOOK_STATES &&
                       fm_state_info((enum fm_state)(look - FM_LOOK_STATES))->ansi == FM_ANSI_DIM
                   ? A_DIM
                   : 0;
    }
}

static void use(enum fm_look look)
{
    bool coloured = tty.colours && look >= FM_LOOK_WARNING && look != FM_LOOK_HEAT1;
    attr_set(attributes(look), coloured ? (short)look : 0, NULL);
}

int fm_screen_put_cut(int row, int column, int width, enum fm_look look, const char *text,
                      enum fm_fit_cut cut)
{
    wchar_t clean[TEXT_CHARS];
    int room = fm_screen_columns() - column;
    width = width < room ? width : room;
    int used = fm_fit(clean, TEXT_CHARS, text, width, cut, tty.unicode ? L'…' : L'~');
    if (row < 0 || row >= fm_screen_rows() || column < 0 || used == 0)
        return 0;
    use(look);
    mvaddwstr(row, column, clean);
    return used;
}

int fm_screen_put(int row, int column, int width, enum fm_look look, const char *text)
{
    return fm_screen_put_cut(row, column, width, look, text, FM_FIT_CUT_END);
}

void fm_screen_put_right(int row, int column, int width, enum fm_look look, const char *text)
{
    int wanted = fm_fit_width(text), skip = wanted < width ? width - wanted : 0;
    fm_screen_put(row, column + skip, width - skip, look, text);
}

void fm_screen_fill(int row, int column, int width, enum fm_look look)
{
    int room = fm_screen_columns() - column;
    use(look);
    for (int i = 0; i < (width < room ? width : room); i++)
        mvaddch(row, column + i, ' ');
}

void fm_screen_cursor(int row, int column)
{
    if (row >= 0)
        move(row, column);
    curs_set(row >= 0);
}
