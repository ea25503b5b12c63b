/*
 * A recording that begins while the program runs, and ends before it: fathom.memory() and
 * `fathom attach --memory`. The library was not preloaded then, so functions of C are not ours: what is
 * hooked are Python's allocators, the raw one included (raw_world.c), which numpy and many others use.
 *
 * Blocks from before are not known: when they end they are counted as unknown and ignored.
 *
 * Hooks stay when it is over: somebody may have put himself in front of them meanwhile and would bring
 * them back, and threads without the GIL may be in them. They pass calls on (`quiet`). An event that was
 * open then still goes on, so what it writes to stays until the next recording begins, for which all
 * threads are outside of events, as when somebody forks (fork.h).
 */
#include <errno.h>
#include <string.h>

#include "base/run_config.h"
#include "target/heap/account/stretch.h"
#include "target/heap/blocks/ranges.h"
#include "target/heap/contexts/codes.h"
#include "target/heap/contexts/watched.h"
#include "target/heap/start.h"
#include "target/heap/store.h"
#include "target/heap/worlds/c_world.h"
#include "target/heap/worlds/event.h"
#include "target/heap/worlds/python_world.h"
#include "target/heap/worlds/raw_world.h"

static bool is_ours(const struct fm_heap_layout *layout)
{
    return layout->bytes == sizeof *layout && layout->frame_object_bytes >= FM_WATCHED_LEAST &&
           layout->code_bytecode >= FM_WATCHED_LEAST;
}

/* Nothing of the recording before. */
static void forget(void)
{
    fm_python_world_clear();
    fm_c_world_clear();
    fm_codes_reset();
    fm_ranges_clear();
    fm_stretch_forget();
    fm_heap_store_close();
    fm_heap.owner = NULL;
    fm_heap.inherited = 0;
    fm_heap.round++;
}

static bool begin(const char *mode, const struct fm_heap_layout *layout)
{
    bool again = fm_heap.header;
    if (again) {
        if (!fm_fork_stop_others()) {
            fm_fork_let_others_go(true);
            return false;
        }
        forget();
    }
    fm_heap.layout = *layout;
    fm_heap.has_layout = true;
    fm_start_begin(mode, true);
    bool begun = fm_heap.header && fm_heap.python;
    if (begun)
        fm_heap_own_retell();
    if (again)
        fm_fork_let_others_go(!begun);
    if (begun) {
        fm_python_world_hook();
        fm_raw_world_hook();
    }
    return begun;
}

/* The agent, with the GIL. 0; 1 if this process is recorded already; -1 if that cannot be done. */
FM_HEAP_EXPORT int fathom_heap_begin(const char *config, const struct fm_heap_layout *layout)
{
    char mode[32];
    int saved_errno = errno;
    if (fm_heap_busy)
        return -1;
    if (*fm_heap.here)
        return 1;
    fm_threads_init();
    if (!fm_threads_can_await() || !is_ours(layout) ||
        !fm_run_config_value(config, "memory", mode, sizeof mode) ||
        !fm_run_config_value(config, "folder", fm_heap.folder, sizeof fm_heap.folder))
        return -1;
    fm_heap_busy = 1;
    bool begun = begin(mode, layout);
    fm_heap_busy = 0;
    errno = saved_errno;
    return begun ? 0 : -1;
}

/* The agent, with the GIL: it is over. The files stay, for who reads them. */
FM_HEAP_EXPORT void fathom_heap_over(void)
{
    int saved_errno = errno, busy = fm_heap_busy;
    if (!*fm_heap.here || !(fm_heap.header->flags & FM_HEAP_LATE))
        return;
    fm_heap_busy = 1;
    fathom_heap_end();
    fm_fork_stop_others();
    fm_fork_let_others_go(true);
    fm_heap_busy = busy;
    errno = saved_errno;
}
