/* The processor's number in a thread's memory; see rseq.h. */
#include "watch/os/still/rseq.h"

#include <string.h>

#include "watch/os/remote/image.h"
#include "watch/os/remote/maps.h"

#define CPU_ID 4 /* struct rseq: cpu_id_start, then cpu_id */

/* Is this the dynamic linker, or a C library? Either may export what is looked for. */
static bool is_candidate(const struct fm_mapping *m)
{
    const char *name = strrchr(m->path, '/');
    return name && !m->offset && (strncmp(name, "/ld", 3) == 0 || strncmp(name, "/libc.", 6) == 0);
}

/* The pthread_t is the thread pointer on x86-64. On others it is not, and the distance cannot be
 * known from outside. */
static bool pthread_is_thread_pointer(void)
{
#ifdef __x86_64__
    return true;
#else
    return false;
#endif
}

bool fm_rseq_find(const struct fm_remote *remote, int64_t *ret_distance)
{
    struct fm_maps maps = { 0 };
    bool found = false;
    if (!pthread_is_thread_pointer() || !remote->pid ||
        fm_maps_read(&maps, remote->pid, NULL, NULL) < 0)
        return false;
    for (size_t i = 0; i < maps.list.len && !found; i++) {
        struct fm_image image;
        int64_t offset;
        uint32_t bytes;
        if (!is_candidate(&maps.list.data[i]) ||
            fm_image_read(&image, remote, maps.list.data[i].start) < 0)
            continue;
        fm_addr offset_at = fm_image_symbol(&image, remote, "__rseq_offset", NULL);
        fm_addr size_at = fm_image_symbol(&image, remote, "__rseq_size", NULL);
        found = offset_at && size_at &&
                fm_remote_read(remote, offset_at, &offset, sizeof offset) == 0 &&
                fm_remote_read(remote, size_at, &bytes, sizeof bytes) == 0 && bytes >= CPU_ID + 4;
        if (found)
            *ret_distance = offset + CPU_ID;
    }
    fm_maps_release(&maps);
    return found;
}
