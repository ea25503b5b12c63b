/* What keys do; see view.h. */
#include "show/top/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "show/top/view_parts.h"

void fm_top_view_init(struct fm_top_view *view, const char *file)
{
    memset(view, 0, sizeof *view);
    view->query = (struct fm_top_query){ .thread = FM_NONE, .states = FM_TOP_ALL_STATES };
    view->query.toggled = &view->toggled;
    view->page = 1;
    view->file = file;
}

void fm_view_clear_items(struct fm_top_view *view)
{
    for (size_t i = 0; i < view->items.len; i++)
        free(view->items.data[i].text);
    view->items.len = 0;
    view->item = view->first_item = 0;
}

void fm_top_view_release(struct fm_top_view *view)
{
    fm_view_clear_items(view);
    fm_vec_release(&view->items);
    fm_map_release(&view->toggled);
    fm_top_table_release(&view->table);
    fm_buffer_release(&view->input);
    fm_buffer_release(&view->search);
}

void fm_top_view_say(struct fm_top_view *view, bool is_warning, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(view->message, sizeof view->message, format, args);
    va_end(args);
    view->is_warning = is_warning;
}

void fm_top_view_ask_replace(struct fm_top_view *view)
{
    view->mode = FM_TOP_MODE_REPLACE;
}

void fm_top_thread_label(const struct fm_top_model *model, uint32_t thread, struct fm_buffer *out)
{
    const struct fm_top_thread *t = &model->threads.data[thread];
    const char *name = fm_strings_get(model->strings, t->name);
    if (*name)
        fm_buffer_addf(out, "%s (%u)", name, t->tid);
    else
        fm_buffer_addf(out, "thread %u", t->tid);
    if (model->processes > 1)
        fm_buffer_addf(out, " of process %u", t->pid);
}

const char *fm_top_states_label(unsigned states)
{
    if (states == FM_TOP_ALL_STATES)
        return "all states";
    if (states == fm_states_running())
        return "running";
    for (int s = 0; s < FM_STATE_COUNT; s++)
        if (states == 1u << s)
            return fm_state_title((enum fm_state)s);
    return "some states";
}

/* Keep a list of `count` rows, of which `page` fit, so that row `at` is on the page. */
static size_t scrolled(size_t first, size_t at, size_t count, size_t page)
{
    if (at < first)
        first = at;
    if (at >= first + page)
        first = at - page + 1;
    if (first + page > count)
        first = count > page ? count - page : 0;
    return first;
}

void fm_top_view_scroll(struct fm_top_view *view)
{
    view->first = scrolled(view->first, view->selected, view->table.rows.len, view->page);
}

void fm_view_select(struct fm_top_view *view, size_t row)
{
    size_t count = view->table.rows.len;
    view->selected = row < count ? row : count ? count - 1 : 0;
    view->key = view->selected && count ? view->table.rows.data[view->selected].key : 0;
    fm_top_view_scroll(view);
}

void fm_top_view_refresh(struct fm_top_view *view, const struct fm_top_model *model)
{
    uint64_t key = view->key;
    size_t offset = view->selected - view->first, row = view->selected;
    fm_top_table_fill(&view->table, model, &view->query);
    for (size_t i = 0; key && i < view->table.rows.len; i++)
        if (view->table.rows.data[i].key == key)
            row = i;
    /* The followed row stays where it is on the page; the others move around it. */
    view->first = row > offset ? row - offset : 0;
    fm_view_select(view, row);
}

static void toggle(struct fm_top_view *view, const struct fm_top_model *model)
{
    if (view->selected >= view->table.rows.len)
        return;
    const struct fm_top_row *row = &view->table.rows.data[view->selected];
    if (!row->has_more) {
        fm_top_view_say(view, false, "%s",
                        !row->line ? "nothing called it: it is the outermost function"
                        : row->wait == FM_NONE
                            ? "it waited for nothing that has a name; f shows functions and callers"
                            : "there is no more to tell");
    } else {
        *fm_map_at(&view->toggled, row->key, 0, NULL) ^= 1;
        view->key = row->key; /* it stays, whatever opens below it */
        fm_top_view_refresh(view, model);
    }
}

static void close_row(struct fm_top_view *view, const struct fm_top_model *model)
{
    size_t at = view->selected;
    if (at >= view->table.rows.len)
        return;
    const struct fm_top_row *rows = view->table.rows.data;
    if (rows[at].open) {
        toggle(view, model);
        return;
    }
    while (at && rows[at].depth && rows[at].depth >= rows[view->selected].depth)
        at--;
    fm_view_select(view, at);
}

static void move(struct fm_top_view *view, enum fm_top_action action)
{
    size_t at = view->selected, page = view->page > 1 ? view->page - 1 : 1;
    switch (action) {
    case FM_TOP_UP:
        at = at ? at - 1 : 0;
        break;
    case FM_TOP_DOWN:
        at++;
        break;
    case FM_TOP_PAGE_UP:
        at = at > page ? at - page : 0;
        break;
    case FM_TOP_PAGE_DOWN:
        at += page;
        break;
    default:
        at = action == FM_TOP_HOME ? 0 : view->table.rows.len;
    }
    fm_view_select(view, at);
}

/* Changes of what is shown. */
static bool change_query(struct fm_top_view *view, enum fm_top_action action)
{
    struct fm_top_query *q = &view->query;
    switch (action) {
    case FM_TOP_SELF:
        q->sort = FM_TOP_SORT_SELF;
        return true;
    case FM_TOP_TOTAL:
        q->sort = FM_TOP_SORT_TOTAL;
        return true;
    case FM_TOP_SAMPLES:
        q->sort = FM_TOP_SORT_SAMPLES;
        return true;
    case FM_TOP_NAME:
        q->sort = FM_TOP_SORT_NAME;
        return true;
    case FM_TOP_PLACE:
        q->sort = FM_TOP_SORT_PLACE;
        return true;
    case FM_TOP_REVERSE:
        q->reverse = !q->reverse;
        return true;
    case FM_TOP_LINES:
    case FM_TOP_FUNCTIONS:
        q->lines = action == FM_TOP_LINES && !q->lines;
        view->key = 0;
        view->selected = view->first = 0;
        return true;
    case FM_TOP_SPAN:
        q->since_start = !q->since_start;
        return true;
    default:
        return false;
    }
}

static enum fm_top_wish pause_or_resume(struct fm_top_view *view)
{
    view->paused = !view->paused && !view->ended;
    if (view->ended)
        fm_top_view_say(view, false, "sampling has ended: the screen stands still anyway");
    return view->paused || view->ended ? FM_TOP_WISH_NONE : FM_TOP_WISH_REFRESH;
}

static enum fm_top_wish begin_mode(struct fm_top_view *view, const struct fm_top_model *model,
                                   enum fm_top_action action)
{
    switch (action) {
    case FM_TOP_HELP:
        view->mode = FM_TOP_MODE_HELP;
        fm_view_clear_items(view);
        break;
    case FM_TOP_THREAD:
        view->mode = FM_TOP_MODE_THREADS;
        fm_view_list_threads(view, model);
        break;
    case FM_TOP_STATE:
        view->mode = FM_TOP_MODE_STATES;
        fm_view_list_states(view, model);
        break;
    case FM_TOP_SEARCH:
        view->mode = FM_TOP_MODE_SEARCH;
        view->origin = view->selected;
        fm_buffer_clear(&view->input);
        break;
    case FM_TOP_WRITE:
        view->mode = FM_TOP_MODE_FILE;
        fm_view_set_text(&view->input, view->file);
        break;
    default:
        break;
    }
    return FM_TOP_WISH_NONE;
}

static enum fm_top_wish key_in_table(struct fm_top_view *view, const struct fm_top_model *model,
                                     uint32_t key)
{
    enum fm_top_action action = fm_top_action_of(key);
    const struct fm_top_row *rows = view->table.rows.data;
    if (change_query(view, action)) {
        fm_top_view_refresh(view, model);
        return FM_TOP_WISH_NONE;
    }
    switch (action) {
    case FM_TOP_QUIT:
        return FM_TOP_WISH_QUIT;
    case FM_TOP_REDRAW:
        return FM_TOP_WISH_REDRAW;
    case FM_TOP_PAUSE:
        return pause_or_resume(view);
    case FM_TOP_NEXT:
    case FM_TOP_PREVIOUS:
        fm_view_find_next(view, model, action == FM_TOP_PREVIOUS);
        return FM_TOP_WISH_NONE;
    case FM_TOP_OPEN:
        if (view->selected < view->table.rows.len && rows[view->selected].open)
            return FM_TOP_WISH_NONE;
        toggle(view, model);
        return FM_TOP_WISH_NONE;
    case FM_TOP_TOGGLE:
        toggle(view, model);
        return FM_TOP_WISH_NONE;
    case FM_TOP_CLOSE:
        close_row(view, model);
        return FM_TOP_WISH_NONE;
    case FM_TOP_UP:
    case FM_TOP_DOWN:
    case FM_TOP_PAGE_UP:
    case FM_TOP_PAGE_DOWN:
    case FM_TOP_HOME:
    case FM_TOP_END:
        move(view, action);
        return FM_TOP_WISH_NONE;
    default:
        return begin_mode(view, model, action);
    }
}

enum fm_top_wish fm_top_view_key(struct fm_top_view *view, const struct fm_top_model *model,
                                 uint32_t key)
{
    view->message[0] = '\0';
    switch (view->mode) {
    case FM_TOP_MODE_SEARCH:
        return fm_view_key_in_search(view, model, key);
    case FM_TOP_MODE_FILE:
        return fm_view_key_in_file(view, key);
    case FM_TOP_MODE_REPLACE:
        return fm_view_key_in_replace(view, key);
    case FM_TOP_MODE_THREADS:
    case FM_TOP_MODE_STATES:
        return fm_view_key_in_list(view, model, key);
    case FM_TOP_MODE_HELP:
        return fm_view_key_in_help(view, key);
    case FM_TOP_MODE_TABLE:
        break;
    }
    return key_in_table(view, model, key);
}
