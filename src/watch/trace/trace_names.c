/* The names of a traced process; see trace_names.h. */
#include "watch/trace/trace_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define NUMBERS_MAX  (1u << 22) /* of functions or names */
#define ANCESTRY_MAX 64u

void fm_trace_names_init(struct fm_trace_names *names, const char *folder, int pid, unsigned number,
                         fm_named_judge *judge, const void *context)
{
    *names = (struct fm_trace_names){ .judge = judge, .context = context };
    for (unsigned i = 0; i < FM_LIVE_FILES; i++)
        fm_live_file_init(&names->files[i], folder, pid, number, i);
}

void fm_trace_names_release(struct fm_trace_names *names)
{
    for (unsigned i = 0; i < FM_LIVE_FILES; i++)
        fm_live_file_release(&names->files[i]);
    for (size_t kind = 0; kind < FM_NAMED_KINDS; kind++) {
        for (size_t i = 0; i < names->of[kind].len; i++)
            free(names->of[kind].data[i].text);
        fm_vec_release(&names->of[kind]);
    }
}

/* ---- definitions ---- */

static void define(struct fm_trace_names *names, enum fm_named_kind kind, uint64_t number,
                   const char *const *texts, size_t count)
{
    if (!number || number >= NUMBERS_MAX || !count)
        return;
    uint32_t wishes = names->judge(names->context, kind, texts, count);
    while (names->of[kind].len <= number)
        fm_vec_push(&names->of[kind], ((struct fm_named){ 0 }));
    struct fm_named *named = &names->of[kind].data[number];
    free(named->text);
    *named = (struct fm_named){ .wishes = wishes };
    if (wishes || kind == FM_NAMED_EXCEPTION)
        named->text = fm_strdup(texts[0]);
}

static void define_function(struct fm_trace_names *names, struct fm_cursor *from)
{
    uint64_t number = fm_cursor_varint(from);
    fm_cursor_varint(from); /* flags */
    fm_cursor_varint(from); /* line */
    fm_autofree char *name = fm_live_text(from), *qualname = fm_live_text(from);
    const char *texts[] = { qualname && *qualname ? qualname : name, name };
    if (!from->failed && name && qualname)
        define(names, FM_NAMED_FUNCTION, number, texts, 2);
}

static void define_exception(struct fm_trace_names *names, struct fm_cursor *from)
{
    uint64_t number = fm_cursor_varint(from);
    fm_autofree char *all = fm_live_text(from);
    const char *texts[ANCESTRY_MAX];
    size_t count = 0;
    char *rest = NULL;
    for (char *one = all ? strtok_r(all, ",", &rest) : NULL; one && count < ANCESTRY_MAX;
         one = strtok_r(NULL, ",", &rest))
        texts[count++] = one;
    if (!from->failed)
        define(names, FM_NAMED_EXCEPTION, number, texts, count);
}

static void define_name(struct fm_trace_names *names, struct fm_cursor *from)
{
    uint64_t number = fm_cursor_varint(from);
    fm_autofree char *text = fm_live_text(from);
    const char *texts[] = { text };
    if (!from->failed && text)
        define(names, FM_NAMED_REGION, number, texts, 1);
}

static void take_definition(void *context, uint64_t kind, struct fm_cursor *fields)
{
    struct fm_trace_names *names = context;
    if (kind == FM_LIVE_DEF_FUNCTION)
        define_function(names, fields);
    else if (kind == FM_LIVE_DEF_NAME)
        define_name(names, fields);
    else if (kind == FM_LIVE_DEF_EXCEPTION)
        define_exception(names, fields);
}

static void read_file(struct fm_trace_names *names, struct fm_live_file *file)
{
    if (!fm_live_file_open(file))
        return;
    fm_live_file_definitions(file, take_definition, names);
    fm_live_file_close(file);
}

const struct fm_named *fm_trace_names_find(struct fm_trace_names *names, enum fm_named_kind kind,
                                           uint32_t number)
{
    if (number >= names->of[kind].len)
        for (unsigned i = 0; i < FM_LIVE_FILES; i++)
            read_file(names, &names->files[i]);
    return number < names->of[kind].len ? &names->of[kind].data[number] : NULL;
}
