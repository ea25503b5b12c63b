/*
 * The source text in a recording, line by line: which text a function came from, where its block
 * ends, and how a line of it is shown on a page.
 *
 * A recording keeps the text of whole files, and of generated code, where many texts may share one
 * name ("<string>"). A function is looked for in each text of its file: at its first line must
 * stand its name, or a lambda, a comprehension, a decorator, or, for a module, anything.
 *
 * Texts are split when first asked for and kept until fm_texts_free.
 */
#ifndef FM_REPORT_TEXT_H
#define FM_REPORT_TEXT_H

#include <stdbool.h>

#include "base/buffer.h"
#include "record/model/profile.h"

struct fm_text {
    uint32_t source; /* index in the profile's sources */
    const char *data;
    size_t len;
    bool latin1;           /* the file says so; otherwise it is UTF-8 */
    FM_VEC(size_t) starts; /* of each line; line n begins at starts[n - 1] */
    uint32_t *statements;  /* per line, from 0: the line on which its statement begins */
};

struct fm_texts;

struct fm_texts *fm_texts_new(const struct fm_profile *p);
void fm_texts_free(struct fm_texts *texts);

/* The text in which function `func` stands, or NULL and in `*why` the reason, as a sentence. */
const struct fm_text *fm_texts_find(struct fm_texts *texts, uint32_t func, const char **why);

static inline uint32_t fm_text_count(const struct fm_text *text)
{
    return (uint32_t)text->starts.len;
}

/* Line `number` (from 1, at most the count) without its newline. */
const char *fm_text_line(const struct fm_text *text, uint32_t number, size_t *len);

/* Add line `number` as it can be shown: clean (base/clean.h), tabs as spaces. */
void fm_text_show(const struct fm_text *text, uint32_t number, struct fm_buffer *out);

/* The column (from 0) at which byte `byte` of line `number` stands when shown; not before those in
 * front of it, also in the middle of a character. */
size_t fm_text_columns(const struct fm_text *text, uint32_t number, size_t byte);

/* The last line of what begins at line `first`: the statement there with its decorators in front
 * and what is indented below it. `*is_class` says whether it is a class. */
uint32_t fm_text_block_end(const struct fm_text *text, uint32_t first, bool *is_class);

/* The last line of function `func`, which stands in `text`; `*is_open` says that other functions
 * make up most of it: a module or a class. */
uint32_t fm_text_function_end(const struct fm_profile *p, const struct fm_text *text, uint32_t func,
                              bool *is_open);

#endif
