/* Lists to choose from, threads and states, and the page of keys; see view.h. */
#include <stdlib.h>

#include "show/report/number.h"
#include "show/top/view_parts.h"

static void add_item(struct fm_top_view *view, uint32_t value, const char *text, int64_t part_ns,
                     int64_t whole_ns)
{
    struct fm_buffer line = FM_BUFFER_INIT;
    char percent[FM_NUMBER_BYTES];
    fm_number_percent(percent, (double)part_ns, (double)whole_ns);
    fm_buffer_addf(&line, "%5s%s  %s", percent, *percent ? "%" : " ", text);
    fm_vec_push(&view->items, ((struct fm_top_item){ value, fm_buffer_detach(&line) }));
}

static int64_t interval_ns(const struct fm_top_count *now, const struct fm_top_count *before,
                           unsigned states)
{
    int64_t sum = 0;
    for (int s = 0; s < FM_STATE_COUNT; s++)
        if ((states & 1u << s) && now->state_ns[s] > before->state_ns[s])
            sum += now->state_ns[s] - before->state_ns[s];
    return sum;
}

struct busy {
    uint32_t thread;
    int64_t running_ns;
};

static int compare_busy(const void *a, const void *b)
{
    const struct busy *x = a, *y = b;
    if (x->running_ns != y->running_ns)
        return x->running_ns > y->running_ns ? -1 : 1;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* Per thread: where most of its time went in the interval, or FM_NONE. Names alone often do not
 * tell threads apart. */
static uint32_t *busiest_functions(const struct fm_top_model *model)
{
    size_t count = model->threads.len;
    uint32_t *functions = fm_calloc(count, sizeof *functions);
    fm_autofree int64_t *most_ns = fm_calloc(count, sizeof *most_ns);
    for (size_t i = 0; i < count; i++)
        functions[i] = FM_NONE;
    for (size_t i = 0; i < model->nodes.len; i++) {
        const struct fm_top_node *node = &model->nodes.data[i];
        int64_t ns = interval_ns(&node->now, &node->before, FM_TOP_ALL_STATES);
        if (ns > most_ns[node->thread]) {
            most_ns[node->thread] = ns;
            functions[node->thread] = node->func;
        }
    }
    return functions;
}

/* The busiest first; the share is that of its own time in which it ran. */
void fm_view_list_threads(struct fm_top_view *view, const struct fm_top_model *model)
{
    size_t count = model->threads.len;
    fm_autofree struct busy *order = fm_calloc(count, sizeof *order);
    fm_autofree uint32_t *functions = busiest_functions(model);
    fm_autobuffer label = FM_BUFFER_INIT;
    fm_view_clear_items(view);
    add_item(view, FM_NONE, "all threads", 0, 0);
    for (uint32_t i = 0; i < count; i++) {
        const struct fm_top_thread *t = &model->threads.data[i];
        order[i] = (struct busy){ i, interval_ns(&t->now, &t->before, fm_states_running()) };
    }
    qsort(order, count, sizeof *order, compare_busy);
    for (size_t i = 0; i < count; i++) {
        uint32_t thread = order[i].thread;
        fm_buffer_clear(&label);
        fm_top_thread_label(model, thread, &label);
        if (functions[thread] != FM_NONE)
            fm_buffer_addf(&label, "  in %s", fm_top_name(model, functions[thread]));
        add_item(view, thread, fm_buffer_text(&label), order[i].running_ns,
                 (int64_t)(model->now_ns - model->before_ns));
        if (thread == view->query.thread)
            view->item = view->items.len - 1;
    }
}

void fm_view_list_states(struct fm_top_view *view, const struct fm_top_model *model)
{
    int64_t whole = interval_ns(&model->now, &model->before, FM_TOP_ALL_STATES);
    fm_view_clear_items(view);
    for (int i = -2; i < FM_STATE_COUNT; i++) {
        unsigned states = i == -2 ? FM_TOP_ALL_STATES : i == -1 ? fm_states_running() : 1u << i;
        add_item(view, states, fm_top_states_label(states),
                 interval_ns(&model->now, &model->before, states), whole);
        if (states == view->query.states)
            view->item = view->items.len - 1;
    }
}

static void move_item(struct fm_top_view *view, enum fm_top_action action, size_t count)
{
    size_t page = view->page > 1 ? view->page - 1 : 1, last = count ? count - 1 : 0;
    if (action == FM_TOP_UP && view->item)
        view->item--;
    else if (action == FM_TOP_PAGE_UP)
        view->item = view->item > page ? view->item - page : 0;
    else if (action == FM_TOP_PAGE_DOWN)
        view->item += page;
    else if (action == FM_TOP_DOWN)
        view->item++;
    else if (action == FM_TOP_HOME)
        view->item = 0;
    else if (action == FM_TOP_END)
        view->item = last;
    if (view->item > last)
        view->item = last;
}

enum fm_top_wish fm_view_key_in_list(struct fm_top_view *view, const struct fm_top_model *model,
                                     uint32_t key)
{
    enum fm_top_action action = fm_top_action_of(key);
    bool threads = view->mode == FM_TOP_MODE_THREADS;
    if (fm_view_is_enter(key) && view->item < view->items.len) {
        if (threads)
            view->query.thread = view->items.data[view->item].value;
        else
            view->query.states = view->items.data[view->item].value;
        view->mode = FM_TOP_MODE_TABLE;
        if (threads && view->query.lines && view->query.thread != FM_NONE)
            fm_top_view_say(view, false, "lines are those of all threads; f shows functions");
        fm_top_view_refresh(view, model);
    } else if (fm_view_is_cancel(key) || action == FM_TOP_QUIT || action == FM_TOP_THREAD ||
               action == FM_TOP_STATE) {
        view->mode = FM_TOP_MODE_TABLE;
    } else {
        move_item(view, action, view->items.len);
    }
    return FM_TOP_WISH_NONE;
}

/* The help is a list in which only the page moves. */
enum fm_top_wish fm_view_key_in_help(struct fm_top_view *view, uint32_t key)
{
    size_t lines = fm_top_keys_count, before = view->item;
    move_item(view, fm_top_action_of(key), lines);
    if (view->item == before && fm_top_action_of(key) != FM_TOP_DOWN &&
        fm_top_action_of(key) != FM_TOP_UP)
        view->mode = FM_TOP_MODE_TABLE;
    return FM_TOP_WISH_NONE;
}
