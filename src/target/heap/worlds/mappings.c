/* Mappings; see mappings.h. */
#undef _FILE_OFFSET_BITS /* both names of mmap are defined here */
#include "target/heap/worlds/mappings.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/heap/account/account.h"
#include "target/heap/blocks/ranges.h"
#include "target/heap/contexts/context.h"
#include "target/heap/sampled/sampled.h"
#include "target/heap/worlds/alone.h"

/* A mapping, or what is left of one. */
struct mapping {
    uintptr_t start, end;
    uint32_t account; /* 0: it is known, but does not count */
    uint32_t kind;    /* enum fm_heap_range_kind */
    uint64_t by;      /* its caller */
};

static struct {
    struct mapping *all; /* in order of address, apart */
    size_t count, room;
    fm_heap_lock lock;
} pieces;

static size_t page_round(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) & ~(page - 1);
}

/* The first piece that ends behind `address`. */
static size_t find(uintptr_t address)
{
    size_t low = 0, high = pieces.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (pieces.all[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void tell(const struct mapping *piece)
{
    fm_ranges_add(piece->kind, piece->start, piece->end - piece->start, piece->by);
}

static bool insert(size_t at, struct mapping piece)
{
    if (pieces.count == pieces.room) {
        struct mapping *all = fm_heap_enlarged(pieces.all, pieces.count, &pieces.room, sizeof *all);
        if (!all)
            return false;
        pieces.all = all;
    }
    memmove(pieces.all + at + 1, pieces.all + at, (pieces.count - at) * sizeof *pieces.all);
    pieces.all[at] = piece;
    pieces.count++;
    tell(&piece);
    return true;
}

static void count_end(struct fm_heap_self *self, bool alone, uint32_t number, uint64_t bytes,
                      int32_t blocks)
{
    if (!number)
        return;
    __atomic_sub_fetch(&fm_heap.header->mapped, (int64_t)bytes, __ATOMIC_RELAXED);
    uint32_t account =
        number > fm_heap.inherited ? number : fm_heap.inherited_account[FM_HEAP_WORLD_C];
    if (fm_heap.sample_bytes) {
        fm_sampled_unmapped(number, bytes, blocks);
        return;
    }
    fm_event_ends(self, bytes);
    fm_account_end_shared(fm_heap.header, &fm_heap.accounts[account], alone, bytes, blocks);
}

/* Everything between two addresses is gone. With the lock. */
static void remove_locked(struct fm_heap_self *self, bool alone, uintptr_t start, uintptr_t end)
{
    for (size_t i = find(start); i < pieces.count && pieces.all[i].start < end;) {
        struct mapping *p = &pieces.all[i], old = *p;
        uintptr_t from = old.start > start ? old.start : start, to = old.end < end ? old.end : end;
        bool head = old.start<from, tail = old.end> to;
        count_end(self, alone, old.account, to - from, !head && !tail);
        fm_ranges_remove(old.start);
        if (head) {
            p->end = from;
            tell(p);
        }
        if (head && tail) { /* a hole: what is behind it becomes a piece of its own */
            struct mapping behind = { to, old.end, old.account, old.kind, old.by };
            if (!insert(i + 1, behind))
                count_end(self, alone, old.account, old.end - to, 0);
            break;
        }
        if (head) {
            i++;
        } else if (tail) {
            p->start = to;
            tell(p);
            break;
        } else {
            memmove(p, p + 1, (pieces.count - i - 1) * sizeof *p);
            pieces.count--;
        }
    }
}

static void remove_range(struct fm_heap_self *self, bool alone, uintptr_t start, uintptr_t end)
{
    fm_heap_lock_take(&pieces.lock);
    remove_locked(self, alone, start, end);
    fm_heap_lock_give(&pieces.lock);
}

static bool keep(void *start, size_t bytes, uint32_t account, uint32_t kind, uint64_t by)
{
    uintptr_t at = (uintptr_t)start;
    fm_heap_lock_take(&pieces.lock);
    bool ok = insert(find(at), (struct mapping){ at, at + bytes, account, kind, by });
    fm_heap_lock_give(&pieces.lock);
    return ok;
}

static void add(struct fm_heap_self *self, bool alone, void *start, size_t bytes, uint32_t kind,
                uint64_t by)
{
    if (kind != FM_HEAP_RANGE_MAPPING) {
        keep(start, bytes, 0, kind, by);
        return;
    }
    uint32_t account = fm_context_account_c(self);
    if (!account) {
        fm_heap_count_lost(FM_HEAP_LOST_BLOCKS);
        return;
    }
    self->allocations++;
    fm_event_begins(self, bytes);
    bool ok = keep(start, bytes, account, kind, by);
    if (ok)
        __atomic_add_fetch(&fm_heap.header->mapped, (int64_t)bytes, __ATOMIC_RELAXED);
    if (ok && fm_heap.sample_bytes)
        fm_sampled_mapped(account, bytes);
    else if (ok)
        fm_account_begin_shared(fm_heap.header, &fm_heap.accounts[account], alone, bytes,
                                FM_HEAP_KIND_MMAP);
    else
        fm_heap_count_lost(FM_HEAP_LOST_BLOCKS);
}

/* What a mapping is: memory that counts as a block; addresses that are only reserved, of which
 * somebody will use what he likes (an allocator of a library's own); or none of ours. */
static uint32_t kind_of(int protection, int flags)
{
    if (!(flags & MAP_PRIVATE) || !(flags & MAP_ANONYMOUS))
        return FM_HEAP_RANGE_NONE;
    if (flags & (MAP_STACK | MAP_GROWSDOWN))
        return FM_HEAP_RANGE_STACK;
    return protection & PROT_WRITE && !(flags & MAP_NORESERVE) ? FM_HEAP_RANGE_MAPPING
                                                               : FM_HEAP_RANGE_RESERVED;
}

/* The system calls themselves: looking for the C library's functions may need memory, and these do
 * no more. */
static void *map(void *address, size_t bytes, int protection, int flags, int fd, off_t at,
                 const void *caller)
{
    struct fm_heap_self *self = fm_event_open();
    void *p = fm_heap_mmap(address, bytes, protection, flags, fd, at);
    if (!self)
        return p;
    int saved_errno = errno;
    bool alone = fm_alone_inside(self);
    if (p != MAP_FAILED && flags & MAP_FIXED)
        remove_range(self, alone, (uintptr_t)p, (uintptr_t)p + page_round(bytes));
    uint32_t kind = kind_of(protection, flags);
    if (p != MAP_FAILED && kind)
        add(self, alone, p, page_round(bytes), kind, (uintptr_t)caller);
    errno = saved_errno;
    fm_event_leave(self);
    return p;
}

FM_HEAP_EXPORT void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t at)
{
    return map(address, bytes, protection, flags, fd, at, __builtin_return_address(0));
}

FM_HEAP_EXPORT void *mmap64(void *address, size_t bytes, int protection, int flags, int fd,
                            off64_t at)
{
    return map(address, bytes, protection, flags, fd, at, __builtin_return_address(0));
}

FM_HEAP_EXPORT int munmap(void *address, size_t bytes)
{
    struct fm_heap_self *self = fm_event_open();
    /* Another thread may be given the addresses at once: the record goes first. It never fails for a
     * range that was mapped. */
    if (self && (uintptr_t)address % (size_t)sysconf(_SC_PAGESIZE) == 0) {
        bool alone = fm_alone_inside(self);
        remove_range(self, alone, (uintptr_t)address, (uintptr_t)address + page_round(bytes));
        fm_event_outside(self);
    }
    int rc = (int)syscall(SYS_munmap, address, bytes);
    if (self)
        fm_event_close();
    return rc;
}

/* The mapping that the first byte of it is in; its kind is 0 if that is none of ours. With the lock. */
static struct mapping known_at(uintptr_t address)
{
    size_t i = find(address);
    return i < pieces.count && pieces.all[i].start <= address ? pieces.all[i]
                                                              : (struct mapping){ 0 };
}

/* Move it; what it was, if it was ours and is ours to add. Another thread may be given the old addresses at
 * once, but not add them before we are done. */
static void *move(struct fm_heap_self *self, bool alone, void *old, size_t old_bytes, size_t bytes,
                  int flags, void *wanted, struct mapping *ret_known)
{
    fm_heap_lock_take(&pieces.lock);
    struct mapping known = known_at((uintptr_t)old);
    void *p = (void *)syscall(SYS_mremap, old, old_bytes, bytes, flags, wanted); /* NOLINT */
    if (p != MAP_FAILED && known.kind) {
        remove_locked(self, alone, (uintptr_t)old, (uintptr_t)old + page_round(old_bytes));
        remove_locked(self, alone, (uintptr_t)p, (uintptr_t)p + page_round(bytes));
    }
    fm_heap_lock_give(&pieces.lock);
    *ret_known = p != MAP_FAILED ? known : (struct mapping){ 0 };
    return p;
}

FM_HEAP_EXPORT void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    void *wanted = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
    va_end(rest);
    struct fm_heap_self *self = fm_event_open();
    if (!self)
        return (void *)syscall(SYS_mremap, old, old_bytes, bytes, flags, wanted); /* NOLINT */
    struct mapping known;
    bool alone = fm_alone_inside(self);
    void *p = move(self, alone, old, old_bytes, bytes, flags, wanted, &known);
    int saved_errno = errno;
    if (known.kind)
        add(self, alone, p, page_round(bytes), known.kind, known.by);
    errno = saved_errno;
    fm_event_leave(self);
    return p;
}

void fm_mappings_hold(void)
{
    fm_heap_lock_take(&pieces.lock);
}

void fm_mappings_release(void)
{
    fm_heap_lock_give(&pieces.lock);
}
