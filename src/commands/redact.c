/* Leaving arguments out; see redact.h. */
#include "commands/redact.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "watch/os/path.h"

#define HIDDEN "…"

/* A word of a command line, without the blanks around it. */
struct word {
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
static struct word next_word(const char **at)
{
    struct word word = { *at + strspn(*at, " "), 0 };
    word.len = *word.text == '\'' ? quoted_len(word.text) : strcspn(word.text, " ");
    *at = word.text + word.len;
    return word;
}

static void add_word(struct fm_buffer *out, struct word word)
{
    if (out->len)
        fm_buffer_add_char(out, ' ');
    fm_buffer_add(out, word.text, word.len);
}

static void add_hidden(struct fm_buffer *out)
{
    add_word(out, (struct word){ HIDDEN, strlen(HIDDEN) });
}

/* Does this program run scripts that its arguments name: a Python, a shell? */
static bool runs_scripts(struct word program)
{
    static const char *const shells[] = { "sh", "bash", "dash", "ksh", "zsh" };
    bool quoted = program.len > 1 && program.text[0] == '\'';
    fm_autofree char *path = fm_strndup(program.text + quoted, program.len - 2 * quoted);
    for (size_t i = 0; i < FM_COUNT(shells); i++)
        if (strcmp(fm_path_base(path), shells[i]) == 0)
            return true;
    return fm_path_names_python(path);
}

/* Take a word of flags. False if what it asks to be run was found in it, or behind it. */
static bool take_flags(struct fm_buffer *out, struct word word, const char **at)
{
    size_t n = 1;
    if (word.text[1] == '-') {
        static const char with_value[] = "--check-hash-based-pycs"; /* the only one of Python's */
        add_word(out, (struct word){ word.text, strcspn(word.text, "= ") });
        if (word.len == strlen(with_value) && strncmp(word.text, with_value, word.len) == 0) {
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
    add_word(out, (struct word){ word.text, module || !flag ? word.len : n + 1 });
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

char *fm_redact_command(const char *command)
{
    struct fm_buffer out = FM_BUFFER_INIT;
    const char *at = command;
    struct word word = next_word(&at);
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
    return fm_buffer_detach(&out);
}

void fm_redact(struct fm_profile *p)
{
    const char *command = fm_profile_fact_get(p, "command");
    fm_autofree char *redacted = command ? fm_redact_command(command) : NULL;
    if (redacted)
        fm_profile_fact(p, "command", redacted);
    for (size_t i = 0; i < p->processes.len; i++) {
        struct fm_process *process = &p->processes.data[i];
        fm_autofree char *text = fm_redact_command(fm_profile_text(p, process->command));
        process->command = fm_profile_string(p, text);
    }
    size_t kept = 0;
    for (size_t i = 0; i < p->sources.len; i++)
        if (strcmp(fm_profile_text(p, p->sources.data[i].file), "<string>") != 0 &&
            p->sources.data[i].state != FM_SOURCE_GENERATED)
            p->sources.data[kept++] = p->sources.data[i];
    p->sources.len = kept;
    fm_profile_fact(p, FM_REDACT_FACT, "the arguments of command lines");
}
