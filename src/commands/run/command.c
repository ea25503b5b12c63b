/* What `fathom run CMD…` means; see run_command.h. */
#include "commands/run/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "watch/os/path.h"

#define INTERPRETERS_MAX 5 /* one of the other; the kernel goes no further */

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* "-m", "-mpkg", "-c", "-cprint()", "-": what Python itself is asked to run. */
static bool is_python_option(const char *word)
{
    return strcmp(word, "-") == 0 || begins_with(word, "-m") || begins_with(word, "-c");
}

static bool has_python_suffix(const char *word)
{
    static const char *const suffixes[] = { ".py", ".pyw", ".pyc", ".pyz", ".zip" };
    for (size_t i = 0; i < FM_COUNT(suffixes); i++)
        if (fm_path_ends_with(word, suffixes[i]))
            return true;
    return false;
}

static bool is_package_folder(const char *word)
{
    if (!fm_path_is_folder(word))
        return false;
    fm_autofree char *main_file = fm_path_join(word, "__main__.py");
    return fm_path_is_file(main_file);
}

/* What stands behind "#!" in the first line of the file; false if it begins otherwise. */
static bool read_interpreter_line(const char *path, char *line, size_t bytes)
{
    char text[256] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    text[len > 0 ? len : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    snprintf(line, bytes, "%s", text + strlen("#!"));
    return begins_with(text, "#!");
}

/* Does the file begin with "#!…python…"? */
static bool names_python_itself(const char *path)
{
    char line[256];
    return read_interpreter_line(path, line, sizeof line) && strstr(line, "python");
}

/* Is one of the words in a first line a Python: "/venv/bin/python", "/usr/bin/env python3.12"? */
static bool is_python_line(const char *line)
{
    for (const char *at = line + strspn(line, " \t"); *at; at += strspn(at, " \t")) {
        size_t len = strcspn(at, " \t");
        fm_autofree char *word = fm_strndup(at, len);
        if (fm_path_names_python(word))
            return true;
        at += len;
    }
    return false;
}

/* Split a first line as the kernel does: the interpreter, and all the rest as one argument. */
static void take_interpreter(struct fm_run_command *command, const char *line)
{
    line += strspn(line, " \t");
    size_t len = strcspn(line, " \t");
    command->named[0] = fm_strndup(line, len);
    line += len + strspn(line + len, " \t");
    for (len = strlen(line); len > 0 && strchr(" \t", line[len - 1]);)
        len--;
    command->named[1] = len ? fm_strndup(line, len) : NULL;
}

/* Is it a script that says by itself what runs it, and may? */
static bool has_own_interpreter(const char *word, char *line, size_t bytes)
{
    return has_python_suffix(word) && fm_path_is_executable(word) &&
           read_interpreter_line(word, line, bytes);
}

/* The interpreter for scripts: the one asked for, or the first of python3 and python on PATH. */
static int choose_python(struct fm_run_command *command, const char *asked, struct fm_error *err)
{
    static const char *const names[] = { "python3", "python" };
    if (asked) {
        fm_autofree char *found = strchr(asked, '/') ? NULL : fm_path_find_program(asked);
        if (!found && !fm_path_is_executable(asked)) {
            fm_error_set(err, FM_NOT_FOUND, "there is no interpreter %s", asked);
            return FM_RUN_NOT_FOUND;
        }
        command->python = fm_strdup(asked);
        return 0;
    }
    for (size_t i = 0; i < FM_COUNT(names); i++) {
        fm_autofree char *found = fm_path_find_program(names[i]);
        if (found) {
            command->python = fm_strdup(names[i]);
            return 0;
        }
    }
    fm_error_set(err, FM_NOT_FOUND,
                 "there is neither python3 nor python on PATH; "
                 "name an interpreter with --python");
    return FM_RUN_NOT_FOUND;
}

/* Is `word` a script for Python? If it can be nothing at all, set the error and `*ret_status`. */
static bool is_script(const char *word, int *ret_status, struct fm_error *err)
{
    *ret_status = 0;
    bool is_path = strchr(word, '/') != NULL;
    if (has_python_suffix(word)) {
        if (fm_path_is_file(word) || is_package_folder(word))
            return true;
        fm_error_set(err, FM_NOT_FOUND, "there is no file %s", word);
        *ret_status = FM_RUN_NOT_FOUND;
        return false;
    }
    if (is_package_folder(word) || (fm_path_is_file(word) && !fm_path_is_executable(word)))
        return true;
    fm_autofree char *found = is_path ? NULL : fm_path_find_program(word);
    if (found || (is_path && fm_path_is_executable(word)))
        return false;
    if (fm_path_is_folder(word)) {
        fm_error_set(err, FM_NOT_FOUND, "%s is a folder without __main__.py", word);
        *ret_status = FM_RUN_NOT_EXECUTABLE;
    } else if (fm_path_is_file(word)) {
        if (names_python_itself(word))
            return true;
        fm_error_set(err, FM_NOT_FOUND,
                     "there is no command %s on PATH; the file of that name is "
                     "run by ./%s",
                     word, word);
        *ret_status = FM_RUN_NOT_FOUND;
    } else {
        fm_error_set(err, FM_NOT_FOUND, "%s is neither a file nor a command", word);
        *ret_status = FM_RUN_NOT_FOUND;
    }
    return false;
}

/* "a/app.py" → "app"; what is left of names that begin with a dot or are empty is "program". */
static char *stem_of(const char *path)
{
    fm_autofree char *copy = fm_strdup(path);
    for (size_t len = strlen(copy); len > 1 && copy[len - 1] == '/'; len--)
        copy[len - 1] = '\0';
    const char *base = fm_path_base(copy);
    size_t len = strlen(base);
    if (has_python_suffix(base))
        len = (size_t)(strrchr(base, '.') - base);
    if (len == 0 || base[0] == '.')
        return fm_strdup("program");
    return fm_strndup(base, len);
}

/* The name of what Python runs, from its arguments: "pkg.mod" for -m pkg.mod, "app" for app.py. */
static char *stem_of_python(char *const *words)
{
    for (; *words; words++) {
        const char *word = *words;
        if (begins_with(word, "-m"))
            return fm_strdup(word[2] ? word + 2 : words[1] ? words[1] : "module");
        if (begins_with(word, "-c"))
            return fm_strdup("command");
        if (strcmp(word, "-") == 0)
            return fm_strdup("stdin");
        if (strcmp(word, "-X") == 0 || strcmp(word, "-W") == 0) {
            if (!*++words)
                break;
        } else if (word[0] != '-') {
            return stem_of(word);
        }
    }
    return fm_strdup("python");
}

/* Slashes would make another folder of it. */
static void make_file_name(char *stem)
{
    for (; *stem; stem++)
        if (*stem == '/')
            *stem = '-';
}

int fm_run_command_init(struct fm_run_command *command, const char *python, char **words,
                        struct fm_error *err)
{
    *command = (struct fm_run_command){ 0 };
    char line[256];
    int status = 0;
    bool script = is_python_option(words[0]) || is_script(words[0], &status, err);
    if (status)
        return status;
    if (script && !python && has_own_interpreter(words[0], line, sizeof line)) {
        script = !strchr(words[0], '/');
        if (script && is_python_line(line))
            take_interpreter(command, line);
    }
    if (script && !command->named[0] && (status = choose_python(command, python, err)))
        return status;
    size_t count = 0;
    while (words[count])
        count++;
    command->argv = fm_calloc(count + 3, sizeof *command->argv);
    char **to = command->argv;
    if (command->python)
        *to++ = command->python;
    for (size_t i = 0; i < FM_COUNT(command->named) && command->named[i]; i++)
        *to++ = command->named[i];
    memcpy(to, words, count * sizeof *words);
    command->file = command->argv[0];
    if (script)
        command->stem = stem_of_python(words);
    else
        command->stem =
            fm_path_names_python(words[0]) ? stem_of_python(words + 1) : stem_of(words[0]);
    make_file_name(command->stem);
    return 0;
}

void fm_run_command_release(struct fm_run_command *command)
{
    free(command->argv);
    free(command->python);
    for (size_t i = 0; i < FM_COUNT(command->named); i++)
        free(command->named[i]);
    free(command->stem);
    *command = (struct fm_run_command){ 0 };
}

/* What is missing where the system says so of a script that is there: the interpreter that its first
 * line names, or one that is named by that. NULL if it is none; malloc'ed. */
static char *missing_interpreter(const char *file)
{
    char *at = strchr(file, '/') ? fm_strdup(file) : fm_path_find_program(file);
    char line[256];
    for (int depth = 0; at && depth < INTERPRETERS_MAX; depth++) {
        bool named = read_interpreter_line(at, line, sizeof line);
        free(at);
        if (!named)
            return NULL;
        const char *word = line + strspn(line, " \t");
        at = fm_strndup(word, strcspn(word, " \t"));
        if (access(at, F_OK) != 0)
            return at;
    }
    free(at);
    return NULL;
}

static void tell_failure(const struct fm_run_command *command, int errnum, struct fm_error *err)
{
    fm_autofree char *missing = errnum == ENOENT ? missing_interpreter(command->file) : NULL;
    const char *script = command->file;
    if (errnum == ENOENT && !missing && command->named[0]) {
        missing = fm_strdup(command->named[0]);
        script = command->argv[command->named[1] ? 2 : 1];
    }
    if (missing)
        fm_error_set(err, FM_NOT_FOUND, "%s: its interpreter %s is missing", script, missing);
    else
        fm_error_set_errno(err, FM_NOT_FOUND, errnum, "%s cannot be executed", command->file);
}

int fm_run_command_failed(const struct fm_run_command *command, int errnum, struct fm_error *err)
{
    tell_failure(command, errnum, err);
    return errnum == ENOENT ? FM_RUN_NOT_FOUND : FM_RUN_NOT_EXECUTABLE;
}

static void add_quoted(struct fm_buffer *buf, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:=,+@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        fm_buffer_add_text(buf, word);
        return;
    }
    fm_buffer_add_char(buf, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            fm_buffer_add_text(buf, "'\\''");
        else
            fm_buffer_add_char(buf, *word);
    }
    fm_buffer_add_char(buf, '\'');
}

char *fm_run_command_text(char *const *argv)
{
    struct fm_buffer buf = FM_BUFFER_INIT;
    for (size_t i = 0; argv[i]; i++) {
        if (i)
            fm_buffer_add_char(&buf, ' ');
        add_quoted(&buf, argv[i]);
    }
    return fm_buffer_detach(&buf);
}
