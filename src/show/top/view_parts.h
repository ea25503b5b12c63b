/* What the files of the view share: keys in each mode, and moving the selection. */
#ifndef FM_TOP_VIEW_PARTS_H
#define FM_TOP_VIEW_PARTS_H

#include "show/top/view.h"

void fm_view_clear_items(struct fm_top_view *view);
/* Select a row, or the last if there are not so many, and have it on the page. */
void fm_view_select(struct fm_top_view *view, size_t row);

/* view_typing.c */
bool fm_view_is_enter(uint32_t key);
bool fm_view_is_cancel(uint32_t key);
void fm_view_set_text(struct fm_buffer *text, const char *value);
void fm_view_find_next(struct fm_top_view *view, const struct fm_top_model *model, bool backward);
enum fm_top_wish fm_view_key_in_search(struct fm_top_view *view, const struct fm_top_model *model,
                                       uint32_t key);
enum fm_top_wish fm_view_key_in_file(struct fm_top_view *view, uint32_t key);
enum fm_top_wish fm_view_key_in_replace(struct fm_top_view *view, uint32_t key);

/* view_lists.c */
void fm_view_list_threads(struct fm_top_view *view, const struct fm_top_model *model);
void fm_view_list_states(struct fm_top_view *view, const struct fm_top_model *model);
enum fm_top_wish fm_view_key_in_list(struct fm_top_view *view, const struct fm_top_model *model,
                                     uint32_t key);
enum fm_top_wish fm_view_key_in_help(struct fm_top_view *view, uint32_t key);

#endif
