/* What is typed into the line at the bottom: a search, the name of a file; see view.h. */
#include <string.h>

#include "base/memory.h"
#include "show/top/view_parts.h"

#define INPUT_BYTES 1024

static bool row_matches(const struct fm_top_model *model, const struct fm_top_row *row,
                        const char *text)
{
    char place[4096];
    return strcasestr(fm_top_name(model, row->func), text) ||
           strcasestr(fm_top_place(model, row->func, row->line, place, sizeof place), text);
}

/* Go to the first match at `from` or behind it (or in front of it), around the end. */
static void find(struct fm_top_view *view, const struct fm_top_model *model, size_t from,
                 bool backward)
{
    size_t count = view->table.rows.len;
    const char *text = fm_buffer_text(&view->search);
    if (!*text) {
        fm_top_view_say(view, false, "nothing to search for yet: / begins");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = (backward ? from + 2 * count - i : from + i) % count;
        if (row_matches(model, &view->table.rows.data[at], text)) {
            fm_view_select(view, at);
            return;
        }
    }
    fm_top_view_say(view, true, "not found: %s", text);
}

void fm_view_find_next(struct fm_top_view *view, const struct fm_top_model *model, bool backward)
{
    size_t count = view->table.rows.len;
    if (count)
        find(view, model, backward ? view->selected + count - 1 : view->selected + 1, backward);
}

static void add_character(struct fm_buffer *text, uint32_t c)
{
    char bytes[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (text->len + n >= INPUT_BYTES)
        return;
    for (size_t i = n; i-- > 1; c >>= 6)
        bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)(n == 1 ? c : ((0xf00u >> n) & 0xff) | c);
    fm_buffer_add(text, bytes, n);
}

static void drop_character(struct fm_buffer *text)
{
    fm_autofree char *copy = fm_strdup(fm_buffer_text(text));
    size_t len = text->len;
    while (len && (copy[len - 1] & 0xc0) == 0x80)
        len--;
    fm_buffer_clear(text);
    fm_buffer_add(text, copy, len ? len - 1 : 0);
}

void fm_view_set_text(struct fm_buffer *text, const char *value)
{
    fm_buffer_clear(text);
    fm_buffer_add_text(text, value);
}

/* Change `text` as the key says; false: the key is none for typing. */
static bool type(struct fm_buffer *text, uint32_t key)
{
    if (key == FM_KEY_BACKSPACE || key == FM_KEY_CONTROL('h'))
        drop_character(text);
    else if (key == FM_KEY_CONTROL('u'))
        fm_buffer_clear(text);
    else if (key >= 0x20 && key < 0x110000)
        add_character(text, key);
    else
        return false;
    return true;
}

bool fm_view_is_enter(uint32_t key)
{
    return key == FM_KEY_ENTER || key == '\n';
}

bool fm_view_is_cancel(uint32_t key)
{
    return key == FM_KEY_ESCAPE || key == FM_KEY_CONTROL('g') || key == FM_KEY_CONTROL('c');
}

enum fm_top_wish fm_view_key_in_search(struct fm_top_view *view, const struct fm_top_model *model,
                                       uint32_t key)
{
    if (fm_view_is_enter(key)) {
        view->mode = FM_TOP_MODE_TABLE;
        if (view->input.len)
            fm_view_set_text(&view->search, fm_buffer_text(&view->input));
        if (view->input.len)
            find(view, model, view->selected, false);
    } else if (fm_view_is_cancel(key)) {
        view->mode = FM_TOP_MODE_TABLE;
        fm_view_select(view, view->origin);
    } else if (type(&view->input, key)) {
        fm_view_set_text(&view->search, fm_buffer_text(&view->input));
        fm_view_select(view, view->origin);
        if (view->input.len)
            find(view, model, view->origin, false);
    }
    return FM_TOP_WISH_NONE;
}

enum fm_top_wish fm_view_key_in_file(struct fm_top_view *view, uint32_t key)
{
    if (fm_view_is_enter(key)) {
        view->mode = FM_TOP_MODE_TABLE;
        if (view->input.len)
            return FM_TOP_WISH_WRITE;
        fm_top_view_say(view, false, "nothing was written");
    } else if (fm_view_is_cancel(key)) {
        view->mode = FM_TOP_MODE_TABLE;
        fm_top_view_say(view, false, "nothing was written");
    } else {
        type(&view->input, key);
    }
    return FM_TOP_WISH_NONE;
}

enum fm_top_wish fm_view_key_in_replace(struct fm_top_view *view, uint32_t key)
{
    view->mode = FM_TOP_MODE_TABLE;
    if (key == 'y' || key == 'Y')
        return FM_TOP_WISH_REPLACE;
    fm_top_view_say(view, false, "nothing was written, %s is as it was",
                    fm_buffer_text(&view->input));
    return FM_TOP_WISH_NONE;
}
