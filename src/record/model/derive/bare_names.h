/*
 * Functions of two sides of which one has qualified names and the other has none: "Loader.load" is what
 * memray and other tools call "load".
 *
 * Those of one file and bare name are looked at together, if all of one side are bare and some of the other are
 * not. They are the same where their first lines are. If no line is found again (the file was edited, or the tool
 * knows no first lines) and there are as many on both sides, the order of their lines tells.
 */
#ifndef FM_MODEL_BARE_NAMES_H
#define FM_MODEL_BARE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fm_bare_name {
    uint32_t side, id;             /* 0 or 1, and the caller's own */
    uint32_t file, name, qualname; /* numbers that are equal where texts are, on both sides */
    uint32_t line;
    bool found; /* set: it is known by `place` and `nth` among those of its file and name … */
    uint32_t place, nth; /* … which the same function has on the other side, if it is there */
};

/* Sorts them, by file, name and side. */
void fm_bare_names_match(struct fm_bare_name *all, size_t n);

#endif
