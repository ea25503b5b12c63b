/*
 * The terminal: taken over by ncurses, given back however the command ends, written to in whole
 * pieces of cleaned text, read key by key.
 *
 * Threads: the one that opened it. There is one terminal, so there is one screen.
 */
#ifndef FM_TOP_SCREEN_H
#define FM_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "record/model/states.h"
#include "show/top/fit.h"

/* How a piece of text looks; without colours only bold, dim and reverse are left. */
enum fm_look {
    FM_LOOK_PLAIN,
    FM_LOOK_DIM,
    FM_LOOK_BOLD,
    FM_LOOK_TITLE, /* of a table: reversed */
    FM_LOOK_SELECTED,
    FM_LOOK_WARNING,
    FM_LOOK_NAME,
    FM_LOOK_HEAT1, /* a small share … */
    FM_LOOK_HEAT2,
    FM_LOOK_HEAT3,
    FM_LOOK_HEAT4,  /* … most of it */
    FM_LOOK_STATES, /* the first of FM_STATE_COUNT */
};

static inline enum fm_look fm_look_of_state(enum fm_state state)
{
    return (enum fm_look)(FM_LOOK_STATES + (int)state);
}

/* Can there be a screen? FM_USAGE, with what to do instead, if there is no terminal or one that
 * cannot move its cursor. */
int fm_screen_check(struct fm_error *err);

/* Take the terminal over. From now on a crash gives it back first. */
int fm_screen_open(struct fm_error *err);
void fm_screen_close(void); /* more than once does no harm */

void fm_screen_resize(void); /* take over the terminal's size, which has changed */
int fm_screen_rows(void);
int fm_screen_columns(void);
bool fm_screen_has_unicode(void); /* may characters beyond ASCII be used for decoration? */

/* A key, or FM_KEY_NONE if none was typed. */
uint32_t fm_screen_key(void);

void fm_screen_clear(void);  /* a new picture, … */
void fm_screen_show(void);   /* … which is shown as the difference to the old one */
void fm_screen_redraw(void); /* the next picture is sent in whole */

/* Write `text` at row and column, in at most `columns`; returns how many it took. */
int fm_screen_put(int row, int column, int columns, enum fm_look look, const char *text);
int fm_screen_put_cut(int row, int column, int columns, enum fm_look look, const char *text,
                      enum fm_fit_cut cut);
/* … right-aligned in `columns`. */
void fm_screen_put_right(int row, int column, int columns, enum fm_look look, const char *text);
/* One look from column to column. */
void fm_screen_fill(int row, int column, int columns, enum fm_look look);
void fm_screen_cursor(int row, int column); /* visible there; row −1: hidden */

#endif
