/*
 * The beginning and the end of the heap library in a process. The preload library, which knows whether
 * this is a Python, starts it before the interpreter exists; in every other program calls are passed
 * on. The agent tells it later what the frames of this Python look like.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/run_config.h"
#include "target/heap/account/account.h"
#include "target/heap/account/together.h"
#include "target/heap/blocks/pools.h"
#include "target/heap/blocks/types.h"
#include "target/heap/contexts/nodes.h"
#include "target/heap/contexts/threads.h"
#include "target/heap/contexts/watched.h"
#include "target/heap/fork.h"
#include "target/heap/sampled/sampled.h"
#include "target/heap/start.h"
#include "target/heap/store.h"
#include "target/heap/worlds/c_world.h"
#include "target/heap/worlds/event.h"
#include "target/heap/worlds/python_world.h"

#define NEWEST_PYTHON 15 /* 3.15 */

/* The root of what is allocated before the program's first code, with an account for each world. */
static bool begin_root(void)
{
    uint32_t node = fm_heap_store_node(0, 0, 0, UINT32_MAX);
    if (!node)
        return false;
    for (int i = 0; i < FM_HEAP_WORLDS; i++)
        if (!fm_nodes_account_new(node, i))
            return false;
    fm_heap.before = node;
    return true;
}

/* Are Python's allocators called with the GIL held, by a Python that we know? In others only C's are
 * recorded. */
static bool has_gil(void)
{
    const char *(*get_version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
    const char *version = get_version ? get_version() : "";
    return strncmp(version, "3.", 2) == 0 && (int)strtol(version + 2, NULL, 10) <= NEWEST_PYTHON &&
           !strstr(version, "free-threading");
}

/* "sampled:524288", or with a seed "sampled:524288:1". What many processes have together is not known
 * well enough then to have a peak. */
static void begin_sampled(const char *mode)
{
    char *end;
    uint64_t bytes = strtoull(mode + strlen("sampled:"), &end, 10);
    if (bytes)
        fm_sampled_init(bytes, *end == ':' ? strtoull(end + 1, NULL, 10) : 0);
}

void fm_start_begin(const char *mode, bool late)
{
    bool gil = has_gil();
    fm_heap.python = gil && strcmp(mode, "malloc") != 0;
    fm_heap.every = strcmp(mode, "events") == 0;
    fm_heap.run = &fm_together_nobody;
    if (strncmp(mode, "sampled:", strlen("sampled:")) == 0)
        begin_sampled(mode);
    else
        fm_together_open();
    if (fm_heap_store_open() < 0)
        return;
    fm_events_open();
    fm_together_join();
    if (!begin_root() || (late && !fm_threads_begin_again())) {
        fm_heap.header = NULL;
        return;
    }
    if (fm_heap.python) {
        fm_heap.header->flags |= FM_HEAP_PYTHON;
        if (!fm_heap.sample_bytes)
            fm_pools_init();
    }
    fm_heap.header->flags |= late ? FM_HEAP_LATE : 0;
    fm_heap_store_ready();
    fm_threads_init();
    fm_fork_init();
    if (gil && !late)
        fm_python_world_hook();
}

__attribute__((constructor)) static void heap_load(void)
{
    int saved_errno = errno;
    fm_c_world_init();
    errno = saved_errno;
}

/* The preload library: this process is a Python, or has loaded one. Before the interpreter exists. */
FM_HEAP_EXPORT void fathom_heap_start(const char *config)
{
    char mode[64], flag[2];
    int saved_errno = errno;
    if (fm_heap.header || fm_heap_busy)
        return;
    fm_heap_busy = 1;
    if (fm_run_config_value(config, "memory", mode, sizeof mode) &&
        fm_run_config_value(config, "folder", fm_heap.folder, sizeof fm_heap.folder)) {
        fm_run_config_value(config, "more", fm_heap.more, sizeof fm_heap.more);
        fm_heap.scarce = fm_run_config_value(config, "scarce", flag, sizeof flag);
        fm_start_begin(mode, false);
    }
    fm_heap.types = fm_heap.python && fm_run_config_value(config, "types", flag, sizeof flag);
    fm_heap_busy = 0;
    errno = saved_errno;
}

/* The agent: the program's first code is about to run, and this is what its frames look like. With the
 * GIL. 1 if types of objects are wanted, too, 0 if not, -1 if nothing is recorded here. */
FM_HEAP_EXPORT int fathom_heap_python(const struct fm_heap_layout *layout)
{
    if (!fm_heap.header || fm_heap.has_layout || layout->bytes != sizeof *layout ||
        layout->frame_object_bytes < FM_WATCHED_LEAST || layout->code_bytecode < FM_WATCHED_LEAST)
        return -1;
    fm_heap.layout = *layout;
    fm_python_world_hook(); /* the interpreter may have put another allocator in place */
    __atomic_store_n(&fm_heap.has_layout, true, __ATOMIC_RELEASE);
    return fm_heap.types;
}

/* The meter of this thread; NULL if nothing is recorded here, or not every block is. It stays where it
 * is until the agent moves it. */
FM_HEAP_EXPORT struct fm_heap_meter *fathom_heap_meter(void)
{
    struct fm_heap_self *self = fm_heap.sample_bytes ? NULL : fm_event_enter();
    if (!self)
        return NULL;
    fm_event_leave(self);
    return self->meter;
}

/* The agent: from now on the meter of this thread lies there, where whatever ends the process leaves it;
 * until the thread ends, or forks. NULL: where it was in the beginning. Returns where it lies. */
FM_HEAP_EXPORT struct fm_heap_meter *fathom_heap_meter_at(struct fm_heap_meter *place)
{
    struct fm_heap_self *self = fm_heap.sample_bytes ? NULL : fm_event_enter();
    if (!self)
        return NULL;
    fm_threads_meter_at(self, place);
    fm_event_leave(self);
    return self->meter;
}

/* What is allocated now, by all threads. */
FM_HEAP_EXPORT int64_t fathom_heap_live(void)
{
    return fm_heap_is_here() ? fm_heap_live(fm_heap.header) : 0;
}

/* The file that this process keeps its accounts in; NULL if nothing is recorded here. */
FM_HEAP_EXPORT const char *fathom_heap_store(void)
{
    struct fm_heap_self *self = fm_event_enter(); /* a child of fork may have no store yet */
    if (!self)
        return NULL;
    fm_event_leave(self);
    return fm_heap_store_path();
}

/* Is what this thread allocates from now on Fathom's own, not to be counted? What it was before. */
FM_HEAP_EXPORT int fathom_heap_own(int own)
{
    int before = fm_heap_busy;
    fm_heap_busy = own;
    return before;
}

/* The agent: nobody will tell of objects. */
FM_HEAP_EXPORT void fathom_heap_no_types(void)
{
    if (fm_heap.header)
        fm_heap.header->flags |= FM_HEAP_NO_TYPES;
}

/* The agent's tracer of references: an object was made. With the GIL. */
FM_HEAP_EXPORT void fathom_heap_object(const void *object, const void *type)
{
    fm_types_object(object, type);
}

/* The preload library: the process is about to execute another program. */
FM_HEAP_EXPORT void fathom_heap_before_exec(void)
{
    fm_together_leave(FM_HEAP_EXECUTES);
}

FM_HEAP_EXPORT void fathom_heap_end(void)
{
    struct timespec now;
    if (!fm_heap_is_here())
        return;
    fm_together_leave(FM_HEAP_LEFT);
    clock_gettime(CLOCK_MONOTONIC, &now);
    fm_heap.header->end_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    fm_heap.header->flags |= FM_HEAP_ENDED;
}

__attribute__((destructor)) static void heap_stop(void)
{
    fathom_heap_end();
}
