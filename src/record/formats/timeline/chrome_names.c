/*
 * Functions, processes and threads of Chrome's trace events, by how tracers call them: viztracer's "f (file:line)" and kineto's
 * "file(line): f"; numbers of the system, or any text in their place.
 */
#include <string.h>

#include "record/formats/timeline/chrome.h"

/* ---- functions ---- */

static uint32_t add_string(struct fm_chrome *c, const char *begin, const char *end)
{
    return fm_strings_add(c->p->strings, begin, (size_t)(end - begin));
}

/* Digits up to `end`: where they begin, or NULL. */
static const char *number_before(const char *begin, const char *end, uint32_t *number)
{
    const char *at = end;
    uint32_t scale = 1;
    *number = 0;
    while (at > begin && at[-1] >= '0' && at[-1] <= '9' && end - at < 9) {
        *number += (uint32_t)(*--at - '0') * scale;
        scale *= 10;
    }
    return at == end ? NULL : at;
}

/* "f (file:line)" */
static bool take_viztracer(struct fm_chrome *c, const struct fm_slice *name, struct fm_function *f)
{
    const char *begin = name->text, *end = begin + name->len, *digits, *open;
    if (name->len < 6 || end[-1] != ')' || !(digits = number_before(begin, end - 1, &f->line)) ||
        digits - begin < 4 || digits[-1] != ':')
        return false;
    for (open = digits - 2; open > begin + 1 && !(open[0] == '(' && open[-1] == ' '); open--)
        continue;
    if (open <= begin + 1)
        return false;
    f->qualname = add_string(c, begin, open - 1);
    f->file = add_string(c, open + 1, digits - 1);
    return true;
}

/* "file.py(line): f" */
static bool take_kineto(struct fm_chrome *c, const struct fm_slice *name, struct fm_function *f)
{
    const char *begin = name->text, *end = begin + name->len;
    const char *colon = memmem(begin, name->len, "): ", 3);
    const char *digits = colon ? number_before(begin, colon, &f->line) : NULL;
    if (!digits || digits - begin < 2 || digits[-1] != '(' || colon + 3 >= end)
        return false;
    f->qualname = add_string(c, colon + 3, end);
    f->file = add_string(c, begin, digits - 1);
    return true;
}

uint32_t fm_chrome_function(struct fm_chrome *c, const struct fm_slice *name,
                            const struct fm_slice *category)
{
    struct fm_function f = { .kind = FM_FUNCTION_PYTHON };
    bool fee = fm_slice_is(category, "fee") || fm_slice_is(category, "FEE");
    bool kineto = fm_slice_is(category, "python_function");
    if (!take_viztracer(c, name, &f) && !(kineto && take_kineto(c, name, &f))) {
        bool builtin =
            fee || kineto || fm_slice_is(category, "c") || (name->len && *name->text == '<');
        f = (struct fm_function){ .kind = builtin ? FM_FUNCTION_C : FM_FUNCTION_NATIVE };
        f.qualname = add_string(c, name->text, name->text + name->len);
    }
    const char *text = fm_profile_text(c->p, f.qualname), *dot = strrchr(text, '.');
    f.name = f.qualname;
    if (f.kind == FM_FUNCTION_PYTHON && dot && dot[1])
        f.name = fm_profile_string(c->p, dot + 1);
    return fm_profile_function(c->p, &f);
}

/* ---- processes and threads ---- */

/* Numbers of the system as they are; others, and text, are no numbers to show. */
static uint32_t number_of(const char *text)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && value < UINT32_MAX; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    return *at || value > INT32_MAX ? 0 : (uint32_t)value;
}

uint32_t fm_chrome_process(struct fm_chrome *c, uint32_t number)
{
    bool is_new;
    uint32_t fresh = (uint32_t)c->p->processes.len;
    uint32_t process = *fm_map_at(&c->processes, number, fresh, &is_new);
    if (is_new) {
        const char *text = fm_strings_get(c->numbers, number);
        struct fm_process made = { .pid = number_of(text),
                                   .exit_status = -1,
                                   .profiled = true,
                                   .calls = true,
                                   .c_calls = true };
        if (*text && !made.pid && strcmp(text, "0") != 0)
            made.command = fm_profile_string(c->p, text);
        fm_profile_process(c->p, &made);
    }
    return process;
}

uint32_t fm_chrome_thread(struct fm_chrome *c, uint32_t process_number, uint32_t number)
{
    bool is_new;
    uint32_t process = fm_chrome_process(c, process_number), fresh = (uint32_t)c->thread_list.len;
    uint32_t at = *fm_map_at(&c->threads, fm_map_pair(process, number), fresh, &is_new);
    if (is_new) {
        const char *text = fm_strings_get(c->numbers, number);
        struct fm_thread made = { .process = process, .tid = number_of(text) };
        if (*text && !made.tid && strcmp(text, "0") != 0)
            made.name = fm_profile_string(c->p, text);
        struct fm_chrome_thread t = { .process = process };
        t.thread = fm_profile_thread(c->p, &made);
        fm_vec_push(&c->thread_list, t);
    }
    return at;
}
