/* Command lines without their arguments; see command_line.h. */
#include "base/command_line.h"

#include <stdbool.h>
#include <string.h>

#define HIDDEN "…"

/* What is left, as far as it fits. */
struct line {
    char *text;
    size_t len, bytes;
};

/* A word of a command line, without the blanks around it. */
struct command_word {
    const char *text;
    size_t len;
};

/* How long a word is that begins with a quote, as add_quoted() in run/command.c writes it: a quote
 * within is '\'' there. */
static size_t quoted_len(const char *text)
{
    bool inside = false;
    size_t n = 0;
    for (; text[n] && (inside || text[n] != ' '); n++) {
        if (text[n] == '\'')
            inside = !inside;
        else if (text[n] == '\\' && !inside && text[n + 1])
            n++;
    }
    return n;
}

/* The word at `*at`, which moves behind it; empty at the end. */
static struct command_word next_word(const char **at)
{
    struct command_word word = { *at + strspn(*at, " "), 0 };
    word.len = *word.text == '\'' ? quoted_len(word.text) : strcspn(word.text, " ");
    *at = word.text + word.len;
    return word;
}

static void add(struct line *out, const char *text, size_t len)
{
    size_t room = out->bytes - 1 - out->len;
    len = len < room ? len : room;
    memcpy(out->text + out->len, text, len);
    out->len += len;
    out->text[out->len] = '\0';
}

static void add_word(struct line *out, struct command_word word)
{
    if (out->len)
        add(out, " ", 1);
    add(out, word.text, word.len);
}

static void add_hidden(struct line *out)
{
    add_word(out, (struct command_word){ HIDDEN, strlen(HIDDEN) });
}

static bool is(struct command_word word, const char *text)
{
    return word.len == strlen(text) && memcmp(word.text, text, word.len) == 0;
}

/* Does this program run scripts that its arguments name: a Python (python, python3.13t), a shell? */
static bool runs_scripts(struct command_word program)
{
    static const char *const shells[] = { "sh", "bash", "dash", "ksh", "zsh" };
    static const char python[] = "python";
    if (program.len > 1 && program.text[0] == '\'')
        program = (struct command_word){ program.text + 1, program.len - 2 };
    const char *slash = memrchr(program.text, '/', program.len);
    if (slash)
        program =
            (struct command_word){ slash + 1, program.len - (size_t)(slash + 1 - program.text) };
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (is(program, shells[i]))
            return true;
    size_t len = strlen(python);
    return program.len >= len && memcmp(program.text, python, len) == 0 &&
           strspn(program.text + len, "0123456789.td") >= program.len - len;
}

/* Take a word of flags. False if what it asks to be run was found in it, or behind it. */
static bool take_flags(struct line *out, struct command_word word, const char **at)
{
    size_t n = 1;
    if (word.text[1] == '-') {
        static const char with_value[] = "--check-hash-based-pycs"; /* the only one of Python's */
        add_word(out, (struct command_word){ word.text, strcspn(word.text, "= ") });
        if (is(word, with_value)) {
            next_word(at);
            add_hidden(out);
        }
        return true;
    }
    while (n < word.len && !strchr("cmXW", word.text[n]))
        n++;
    bool attached = n + 1 < word.len;
    char flag = n < word.len ? word.text[n] : '\0';
    bool module = flag == 'm';
    add_word(out, (struct command_word){ word.text, module || !flag ? word.len : n + 1 });
    if (!flag)
        return true;
    if (module && !attached)
        add_word(out, next_word(at));
    if (flag == 'X' || flag == 'W') {
        if (!attached)
            next_word(at);
        add_hidden(out);
        return true;
    }
    return false;
}

void fm_command_line_redact(const char *command, char *text, size_t bytes)
{
    struct line out = { text, 0, bytes };
    text[0] = '\0';
    const char *at = command;
    struct command_word word = next_word(&at);
    add_word(&out, word);
    bool script = !runs_scripts(word);
    while (!script && (word = next_word(&at)).len) {
        if (word.text[0] == '-' && word.len > 1) {
            script = !take_flags(&out, word, &at);
        } else {
            add_word(&out, word);
            script = true;
        }
    }
    if (next_word(&at).len)
        add_hidden(&out);
}
