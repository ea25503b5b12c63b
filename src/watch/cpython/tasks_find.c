/* Finding asyncio's tasks; see tasks_find.h. */
#include "watch/cpython/tasks_find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "watch/os/remote/corefile.h"
#include "watch/os/remote/elf.h"
#include "watch/os/remote/image.h"
#include "watch/os/remote/maps.h"

/* As CPython lays out the section .AsyncioDebug. */
struct debug_offsets {
    struct {
        uint64_t size, name, awaited_by, is_task, awaited_by_is_set, coro, node;
    } task;
    struct {
        uint64_t size, tasks_head;
    } interp;
    struct {
        uint64_t size, running_loop, running_task, tasks_head;
    } thread;
};

/* TaskObj before 3.14, counted from the end of the object's head. */
struct task_layout {
    uint16_t loop, state, waiter, coro, name;
};

static const struct task_layout task_layouts[] = {
    [9] = { 16 - 16, 80 - 16, 144 - 16, 152 - 16, 160 - 16 },
    [10] = { 16 - 16, 88 - 16, 152 - 16, 160 - 16, 168 - 16 },
    [11] = { 16 - 16, 88 - 16, 128 - 16, 136 - 16, 144 - 16 },
    [12] = { 16 - 16, 88 - 16, 128 - 16, 136 - 16, 144 - 16 },
    [13] = { 16 - 16, 96 - 16, 112 - 16, 120 - 16, 128 - 16 },
};

/* The weak sets of one interpreter. */
struct sets {
    fm_addr interp, weak[2], plain;
};

struct fm_task_finder {
    const struct fm_runtime *runtime;
    bool lists; /* 3.14+ */
    bool have_offsets;
    bool unreadable; /* asyncio is there, the section is not */
    struct debug_offsets offsets;
    uint64_t searched; /* how many modules there were when asyncio was last looked for in vain */
    FM_VEC(struct sets) sets;
};

/* ---- the section .AsyncioDebug ---- */

static bool offsets_are_sane(const struct debug_offsets *o)
{
    uint64_t task = o->task.size, thread = o->thread.size, interp = o->interp.size;
    if (task < 64 || task > 4096 || thread < 64 || thread > 1 << 16 || interp < 64 ||
        interp > 1 << 24)
        return false;
    return o->task.name <= task - 8 && o->task.awaited_by <= task - 8 && o->task.is_task < task &&
           o->task.awaited_by_is_set < task && o->task.coro <= task - 8 &&
           o->task.node <= task - 16 && o->thread.tasks_head <= thread - 16 &&
           o->thread.running_task <= thread - 8 && o->interp.tasks_head <= interp - 16;
}

/* The section in the file mapped from `m` on, read from memory. */
static bool offsets_from(struct fm_task_finder *finder, const struct fm_remote *remote,
                         const struct fm_mapping *m)
{
    char path[4200];
    struct fm_image image;
    uint64_t value, size;
    if (remote->pid)
        snprintf(path, sizeof path, "/proc/%d/root%s", (int)remote->pid, m->path);
    else
        snprintf(path, sizeof path, "%s", m->path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct fm_elf *elf = fd < 0 ? NULL : fm_elf_new(fd);
    bool found =
        elf && fm_elf_section(elf, ".AsyncioDebug", &value, &size) &&
        size >= sizeof finder->offsets && fm_image_read(&image, remote, m->start) == FM_IMAGE_OK &&
        fm_remote_read(remote, image.bias + value, &finder->offsets, sizeof finder->offsets) == 0 &&
        offsets_are_sane(&finder->offsets);
    fm_elf_free(elf);
    return found;
}

static bool may_hold_asyncio(const struct fm_task_finder *finder, const char *path)
{
    const char *name = strrchr(path, '/');
    return name && (strncmp(name, "/_asyncio", 9) == 0 || strcmp(path, finder->runtime->path) == 0);
}

static void find_offsets(struct fm_task_finder *finder, const struct fm_remote *remote)
{
    struct fm_maps own = { 0 };
    const struct fm_maps *maps = fm_core_maps(remote);
    struct fm_error err = FM_ERROR_INIT;
    if (!maps && remote->pid && fm_maps_read(&own, remote->pid, NULL, &err) == 0)
        maps = &own;
    for (size_t i = 0; maps && i < maps->list.len && !finder->have_offsets; i++) {
        const struct fm_mapping *m = &maps->list.data[i];
        if (m->offset == 0 && may_hold_asyncio(finder, m->path))
            finder->have_offsets = offsets_from(finder, remote, m);
    }
    fm_maps_release(&own);
}

/* Looking costs some time: only when modules were imported since. */
static bool may_search(struct fm_task_finder *finder, const struct fm_heap *t, fm_addr interp)
{
    fm_addr modules = fm_remote_pointer(t->remote, interp + t->layout->interp_modules);
    int64_t count = modules ? fm_dict_count(t, modules) : -1;
    if (count < 0 || (uint64_t)count == finder->searched)
        return false;
    finder->searched = (uint64_t)count;
    return true;
}

/* ---- 3.14+: lists ---- */

static int walk_list(const struct fm_task_finder *finder, const struct fm_heap *t, fm_addr head,
                     struct fm_addrs *tasks)
{
    fm_addr node = fm_remote_pointer(t->remote, head);
    for (int i = 0; node && node != head; i++) {
        if (i == FM_TASKS_MAX || node & 7 || node < finder->offsets.task.node)
            return -EINVAL;
        fm_vec_push(tasks, node - finder->offsets.task.node);
        node = fm_remote_pointer(t->remote, node);
    }
    return node ? 0 : -EFAULT; /* a circle, unless it changed under us or was never begun */
}

static bool is_main(const struct fm_heap *t, fm_addr thread)
{
    return fm_remote_pointer(t->remote, thread + t->layout->thread_next) == 0;
}

static int find_in_lists(struct fm_task_finder *finder, const struct fm_heap *t, fm_addr interp,
                         fm_addr thread, struct fm_addrs *tasks)
{
    if (!finder->have_offsets && may_search(finder, t, interp)) {
        find_offsets(finder, t->remote);
        finder->unreadable = !finder->have_offsets && fm_module_find(t, interp, "_asyncio");
    }
    if (!finder->have_offsets)
        return finder->unreadable ? -ENODATA : 0;
    int status = walk_list(finder, t, thread + finder->offsets.thread.tasks_head, tasks);
    if (is_main(t, thread)) /* what threads that ended have left */
        walk_list(finder, t, interp + finder->offsets.interp.tasks_head, tasks);
    return status;
}

static bool byte_at(const struct fm_heap *t, fm_addr at)
{
    uint8_t byte = 0;
    return fm_remote_read(t->remote, at, &byte, 1) == 0 && byte;
}

/* The first task among those that wait for `future`: what gather() makes is no task, but is waited
 * for by one. */
static void tell_awaiters(const struct fm_task_finder *finder, const struct fm_heap *t,
                          const struct fm_map *known, fm_addr future, size_t awaited, int depth,
                          fm_task_pair *tell, void *context)
{
    enum { MAX_AWAITERS = 64, MAX_DEPTH = 6 };
    const struct debug_offsets *o = &finder->offsets;
    struct fm_addrs list = { 0 };
    fm_addr by = fm_remote_pointer(t->remote, future + o->task.awaited_by);
    if (!by || depth == MAX_DEPTH)
        return;
    if (byte_at(t, future + o->task.awaited_by_is_set))
        fm_set_items(t, by, MAX_AWAITERS, &list);
    else
        fm_vec_push(&list, by);
    for (size_t i = 0; i < list.len; i++) {
        const uint32_t *index = fm_map_find(known, list.data[i]);
        if (index)
            tell(context, awaited, *index);
        else if (!byte_at(t, list.data[i] + o->task.is_task))
            tell_awaiters(finder, t, known, list.data[i], awaited, depth + 1, tell, context);
    }
    fm_vec_release(&list);
}

/* ---- before: weak sets ---- */

static const struct task_layout *task_layout(const struct fm_heap *t)
{
    unsigned minor = fm_layout_minor(t->layout);
    return minor < FM_COUNT(task_layouts) && task_layouts[minor].coro ? &task_layouts[minor] : NULL;
}

static const struct sets *find_sets(struct fm_task_finder *finder, const struct fm_heap *t,
                                    fm_addr interp)
{
    for (size_t i = 0; i < finder->sets.len; i++) {
        if (finder->sets.data[i].interp == interp)
            return &finder->sets.data[i];
    }
    if (!may_search(finder, t, interp))
        return NULL;
    fm_addr module = fm_module_find(t, interp, "asyncio.tasks");
    if (!module)
        return NULL;
    struct sets sets = { .interp = interp };
    sets.weak[0] = fm_module_attribute(t, module, "_all_tasks");
    sets.weak[1] = fm_module_attribute(t, module, "_scheduled_tasks");
    sets.plain = fm_module_attribute(t, module, "_eager_tasks");
    if (!sets.weak[0] && !sets.weak[1])
        return NULL; /* being imported: later */
    fm_vec_push(&finder->sets, sets);
    return &finder->sets.data[finder->sets.len - 1];
}

/* Is it asyncio's own class, or derived from it? */
static bool is_task(const struct fm_heap *t, fm_addr at)
{
    enum { BASE_BEHIND_FLAGS = 256 - 168, MAX_BASES = 16 };
    char name[32];
    fm_addr type = fm_object_type(t, at);
    for (int i = 0; i < MAX_BASES && type; i++) {
        if (fm_type_name(t, type, name, sizeof name) && strcmp(name, "_asyncio.Task") == 0)
            return true;
        type = fm_remote_pointer(t->remote, type + t->layout->type_flags + BASE_BEHIND_FLAGS);
    }
    return false;
}

static void add_if_pending(const struct fm_heap *t, const struct task_layout *l, fm_addr at,
                           struct fm_addrs *tasks)
{
    int32_t state;
    if (at && is_task(t, at) &&
        fm_remote_read(t->remote, at + t->layout->object_size + l->state, &state, 4) == 0 &&
        state == 0)
        fm_vec_push(tasks, at);
}

/* The pending tasks of all loops of an interpreter. */
static void tasks_of_sets(const struct fm_heap *t, const struct sets *sets, struct fm_addrs *tasks)
{
    struct fm_addrs members = { 0 };
    const struct task_layout *l = task_layout(t);
    for (int i = 0; i < 2; i++) {
        if (!sets->weak[i])
            continue;
        members.len = 0;
        fm_set_items(t, fm_object_attribute(t, sets->weak[i], "data"), FM_TASKS_MAX, &members);
        for (size_t k = 0; k < members.len; k++) /* wr_object: a weak reference's first field */
            add_if_pending(t, l,
                           fm_remote_pointer(t->remote, members.data[k] + t->layout->object_size),
                           tasks);
    }
    members.len = 0;
    if (sets->plain)
        fm_set_items(t, sets->plain, FM_TASKS_MAX, &members);
    for (size_t k = 0; k < members.len; k++)
        add_if_pending(t, l, members.data[k], tasks);
    fm_vec_release(&members);
}

static int find_in_sets(struct fm_task_finder *finder, const struct fm_heap *t, fm_addr interp,
                        fm_addr thread, struct fm_addrs *tasks)
{
    const struct sets *sets = find_sets(finder, t, interp);
    struct fm_addrs all = { 0 };
    fm_addr last_loop = 0;
    uint64_t ident = fm_remote_pointer(t->remote, thread + t->layout->thread_id);
    bool main = is_main(t, thread), last_is_ours = false;
    if (!sets)
        return 0;
    tasks_of_sets(t, sets, &all);
    for (size_t i = 0; i < all.len; i++) {
        fm_addr loop = fm_remote_pointer(t->remote, all.data[i] + t->layout->object_size +
                                                        task_layout(t)->loop);
        if (loop != last_loop || i == 0) {
            int64_t of_thread;
            last_loop = loop;
            /* A loop that does not run, or is not written in Python, does not say whose it is. */
            last_is_ours = fm_object_int(t, fm_object_attribute(t, loop, "_thread_id"), &of_thread)
                               ? (uint64_t)of_thread == ident
                               : main;
        }
        if (last_is_ours)
            fm_vec_push(tasks, all.data[i]);
    }
    fm_vec_release(&all);
    return 0;
}

/* ---- both ---- */

struct fm_task_finder *fm_task_finder_new(const struct fm_runtime *runtime,
                                          const struct fm_remote *remote, struct fm_error *err)
{
    struct fm_heap t = { remote, &runtime->layout };
    bool lists = fm_layout_minor(&runtime->layout) >= 14;
    if (!lists && !task_layout(&t)) {
        fm_error_set(err, FM_UNSUPPORTED, "asyncio of Python 3.%u cannot be read",
                     fm_layout_minor(&runtime->layout));
        return NULL;
    }
    struct fm_task_finder *finder = fm_calloc(1, sizeof *finder);
    finder->runtime = runtime;
    finder->lists = lists;
    return finder;
}

void fm_task_finder_free(struct fm_task_finder *finder)
{
    if (!finder)
        return;
    fm_vec_release(&finder->sets);
    free(finder);
}

int fm_task_finder_find(struct fm_task_finder *finder, const struct fm_heap *t, fm_addr thread,
                        struct fm_addrs *tasks)
{
    fm_addr interp;
    int status = fm_remote_read(t->remote, thread + t->layout->thread_interp, &interp, 8);
    if (status < 0)
        return status;
    return finder->lists ? find_in_lists(finder, t, interp, thread, tasks)
                         : find_in_sets(finder, t, interp, thread, tasks);
}

bool fm_task_finder_is_ordered(const struct fm_task_finder *finder)
{
    return finder->lists;
}

fm_addr fm_task_coroutine(const struct fm_task_finder *finder, const struct fm_heap *t,
                          fm_addr task)
{
    fm_addr at = finder->lists ? task + finder->offsets.task.coro
                               : task + t->layout->object_size + task_layout(t)->coro;
    return fm_remote_pointer(t->remote, at);
}

bool fm_task_name(const struct fm_task_finder *finder, const struct fm_heap *t, fm_addr task,
                  char *into, size_t cap)
{
    int64_t number;
    fm_addr name = fm_remote_pointer(t->remote, finder->lists ? task + finder->offsets.task.name
                                                              : task + t->layout->object_size +
                                                                    task_layout(t)->name);
    if (fm_object_text(t, name, into, cap))
        return true;
    if (!fm_object_int(t, name, &number)) /* a number until somebody asks for the name */
        return false;
    snprintf(into, cap, "Task-%lld", (long long)number);
    return true;
}

/* Before 3.14 a task only knows what it waits for. */
static void tell_awaited(const struct fm_heap *t, const struct fm_map *known, fm_addr task,
                         size_t waiting, fm_task_pair *tell, void *context)
{
    struct fm_addrs children = { 0 };
    fm_addr future =
        fm_remote_pointer(t->remote, task + t->layout->object_size + task_layout(t)->waiter);
    const uint32_t *index = future ? fm_map_find(known, future) : NULL;
    if (index)
        tell(context, *index, waiting);
    else if (fm_object_is(t, future, "_GatheringFuture"))
        fm_sequence_items(t, fm_object_attribute(t, future, "_children"), FM_TASKS_MAX, &children);
    for (size_t i = 0; i < children.len; i++) {
        index = fm_map_find(known, children.data[i]);
        if (index)
            tell(context, *index, waiting);
    }
    fm_vec_release(&children);
}

void fm_task_finder_pairs(const struct fm_task_finder *finder, const struct fm_heap *t,
                          const struct fm_addrs *tasks, fm_task_pair *tell, void *context)
{
    struct fm_map known = { 0 };
    for (size_t i = 0; i < tasks->len; i++)
        fm_map_at(&known, tasks->data[i], (uint32_t)i, NULL);
    for (size_t i = 0; i < tasks->len; i++) {
        if (finder->lists)
            tell_awaiters(finder, t, &known, tasks->data[i], i, 0, tell, context);
        else
            tell_awaited(t, &known, tasks->data[i], i, tell, context);
    }
    fm_map_release(&known);
}
