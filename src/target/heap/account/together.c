/* What all processes of the run have together; see together.h. */
#include "target/heap/account/together.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/heap/account/account.h"
#include "target/heap/store.h"

#define LAST_WORDS_BYTES ((int64_t)32 << 20)

struct fm_heap_run fm_together_nobody = { .epoch = 1 };

static fm_heap_lock telling;
static int64_t gone_seen; /* of fm_heap_run.gone */

void fm_together_open(void)
{
    char path[sizeof fm_heap.folder + sizeof FM_HEAP_RUN_FILE + 1];
    struct stat st;
    fm_together_nobody = (struct fm_heap_run){ .epoch = 1 };
    fm_heap.run = &fm_together_nobody;
    snprintf(path, sizeof path, "%s/%s", fm_heap.folder, FM_HEAP_RUN_FILE);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    void *run = MAP_FAILED;
    if (fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof *fm_heap.run)
        run = fm_heap_mmap(NULL, sizeof *fm_heap.run, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (run != MAP_FAILED)
        fm_heap.run = run;
    close(fd);
}

/* What is alive, but for what the process was born with. */
static int64_t own_live(const struct fm_heap_header *h)
{
    int64_t live = fm_heap_live(h);
    for (int i = 0; i < FM_HEAP_WORLDS && fm_heap.inherited; i++)
        live -=
            __atomic_load_n(&fm_heap.accounts[fm_heap.inherited_account[i]].live, __ATOMIC_RELAXED);
    return live;
}

/* Has the other one been killed, or stopped, between two instructions? It is waited for only so long
 * that everybody else would be done. */
static bool is_gone(uint32_t teller, unsigned yields)
{
    return yields > 10000 || (yields % 64 == 63 && kill((pid_t)teller, 0) < 0 && errno == ESRCH);
}

/* Of all processes this one changes the sum; see together.h. */
static void take_run(struct fm_heap_run *run)
{
    int saved_errno = errno;
    uint32_t me = fm_heap.header->pid, teller = 0;
    for (unsigned yields = 0; !__atomic_compare_exchange_n(&run->teller, &teller, me, false,
                                                           __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
         yields++) {
        sched_yield();
        if (!is_gone(teller, yields))
            teller = 0;
    }
    errno = saved_errno;
}

static void give_run(struct fm_heap_run *run)
{
    __atomic_store_n(&run->teller, 0, __ATOMIC_RELEASE);
}

/* The sum is no longer at its highest, if it was. */
static void fall(struct fm_heap_run *run)
{
    if (run->rising)
        __atomic_store_n(&run->epoch, run->epoch + 1, __ATOMIC_RELAXED);
    run->rising = 0;
}

/* What all have together. Processes that were killed have nothing. */
static int64_t sum_of(const struct fm_heap_run *run, int64_t gone)
{
    return __atomic_load_n(&run->live, __ATOMIC_RELAXED) +
           __atomic_load_n(&run->first, __ATOMIC_RELAXED) - gone;
}

static void see_gone(struct fm_heap_run *run, int64_t gone)
{
    take_run(run);
    __atomic_store_n(&gone_seen, gone, __ATOMIC_RELAXED);
    if (sum_of(run, gone) < run->peak)
        fall(run);
    give_run(run);
}

/* The run has more than it may. The first that sees it notes that, so that the launcher ends the others,
 * and ends itself, in order if it can: what is alive now stays what is recorded. A program that goes on
 * all the same gets some room for its last words. */
static void pass_limit(struct fm_heap_run *run, int64_t sum, int64_t limit)
{
    uint32_t nobody = 0, me = (uint32_t)getpid();
    if (__atomic_compare_exchange_n(&run->passed_by, &nobody, me, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED)) {
        __atomic_store_n(&run->passed_sum, sum, __ATOMIC_RELEASE);
        kill((pid_t)me, SIGTERM);
    } else if (sum > limit + limit / 4 && sum - limit > LAST_WORDS_BYTES) {
        kill((pid_t)me, SIGKILL);
    }
}

/* The same in a run that has had no other process: nobody else changes anything, and as long as the peak
 * stays what it is, one word says it all. Blocks of some ten kilobytes, as numpy has them, are told of one
 * by one. */
static inline bool contribute_alone(struct fm_heap_header *h, int64_t bytes)
{
    struct fm_heap_run *run = fm_heap.run;
    int64_t sum = h->contributed + bytes;
    if (h->member != 1 || __atomic_load_n(&run->members, __ATOMIC_RELAXED) != 1 ||
        sum > run->peak || (bytes < 0 && run->rising))
        return false;
    h->contributed = sum;
    __atomic_store_n(&run->first, sum, __ATOMIC_RELAXED);
    return true;
}

static __attribute__((noinline)) int64_t contribute_to_all(struct fm_heap_header *h, int64_t bytes)
{
    struct fm_heap_run *run = fm_heap.run;
    int64_t *has = h->member == 1 ? &run->first : &run->live;
    h->contributed += bytes;
    take_run(run);
    __atomic_store_n(has, *has + bytes, __ATOMIC_RELAXED);
    int64_t sum = sum_of(run, __atomic_load_n(&run->gone, __ATOMIC_RELAXED));
    if (sum > run->peak) {
        __atomic_store_n(&run->peak, sum, __ATOMIC_RELAXED);
        run->rising = 1;
    } else if (bytes < 0) {
        fall(run);
    }
    give_run(run);
    return sum;
}

/* The process has so much more, or less: what all have together now. With the lock of the process. */
static inline int64_t contribute(struct fm_heap_header *h, int64_t bytes)
{
    return FM_LIKELY(contribute_alone(h, bytes)) ? h->contributed : contribute_to_all(h, bytes);
}

/* Where no other thread counts anything there is nobody to lock out, either. */
static inline bool tell_alone(struct fm_heap_header *h)
{
    int64_t live = fm_heap_live(h);
    if (fm_heap.inherited || h->left != FM_HEAP_STAYS ||
        !contribute_alone(h, live - h->contributed))
        return false;
    __atomic_store_n(&h->told, live, __ATOMIC_RELAXED);
    return true;
}

void fm_together_tell(struct fm_heap_header *h, bool alone)
{
    int64_t sum = 0, limit = __atomic_load_n(&fm_heap.run->limit, __ATOMIC_RELAXED);
    if (FM_LIKELY(alone && !fm_heap.python && limit <= 0) && tell_alone(h))
        return;
    fm_heap_lock_take(&telling);
    if (h->left != FM_HEAP_LEFT) {
        h->left = FM_HEAP_STAYS; /* it did not execute anything, after all */
        __atomic_store_n(&h->told, fm_heap_live(h), __ATOMIC_RELAXED);
        sum = contribute(h, own_live(h) - h->contributed);
    }
    fm_heap_lock_give(&telling);
    if (FM_UNLIKELY(limit > 0 && sum > limit)) {
        int saved_errno = errno;
        pass_limit(fm_heap.run, sum, limit);
        errno = saved_errno;
    }
}

void fm_together_join(void)
{
    struct fm_heap_run *run = fm_heap.run;
    telling = (fm_heap_lock){ 0 }; /* a thread that is not here may have had it */
    fm_heap.header->told = fm_heap_live(fm_heap.header);
    fm_heap.header->member = __atomic_add_fetch(&run->members, 1, __ATOMIC_ACQ_REL);
    if (fm_heap.header->member == 2)
        run->alone_peak = __atomic_load_n(&run->peak, __ATOMIC_RELAXED);
}

void fm_together_leave(enum fm_heap_left left)
{
    struct fm_heap_header *h = fm_heap.header;
    /* A child of vfork, or of fork without a store of its own, has this header, too. */
    if (!fm_heap_is_here() || h->pid != (uint32_t)getpid())
        return;
    fm_heap_lock_take(&telling);
    if (h->left != FM_HEAP_LEFT) {
        contribute(h, -h->contributed);
        h->told = INT64_MIN / 2; /* the next event tells, if there is one */
        h->left_peak = __atomic_load_n(&fm_heap.run->peak, __ATOMIC_RELAXED);
        h->left = left;
    }
    fm_heap_lock_give(&telling);
}

void fm_together_touch(const struct fm_heap_account *account)
{
    struct fm_heap_share *share = &fm_heap.shares[fm_heap_store_number(account)];
    int64_t gone = __atomic_load_n(&fm_heap.run->gone, __ATOMIC_RELAXED);
    if (FM_UNLIKELY(gone != __atomic_load_n(&gone_seen, __ATOMIC_RELAXED)))
        see_gone(fm_heap.run, gone);
    uint32_t epoch = __atomic_load_n(&fm_heap.run->epoch, __ATOMIC_RELAXED);
    if (FM_LIKELY(__atomic_load_n(&share->epoch, __ATOMIC_RELAXED) == epoch))
        return;
    /* Of several threads in the C world the first that sees the epoch notes what it finds. */
    uint32_t old = __atomic_exchange_n(&share->epoch, epoch, __ATOMIC_ACQ_REL);
    if (old == epoch)
        return;
    share->at = __atomic_load_n(&account->live, __ATOMIC_RELAXED);
    share->at_blocks = __atomic_load_n(&account->live_blocks, __ATOMIC_RELAXED);
}
