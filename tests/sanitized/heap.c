/*
 * The heap library without a Python, for sanitizers: they own malloc, so that the library cannot stand in front of it as it does
 * in programs. Here its hooks have other names (the compiler is told -Dmalloc=counted_malloc and so on), and are called by threads that
 * allocate, free what others made, hold a GIL or not, climb up and down stacks that look like CPython's, and fork among all that.
 *
 *     heap FOLDER MODE SEED: what is in the store at the end is compared with what was done, to the byte.
 */
#define _GNU_SOURCE
#include "target/heap/worlds/c_world.c"
#include "target/heap/worlds/mappings.c"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

void fathom_heap_start(const char *config);
int fathom_heap_python(const struct fm_heap_layout *layout);

enum {
    THREADS = 5,
    SLOTS = 64,
    MAILBOX = 128,
    STEPS = 12000,
    TURN = 400,
    CODES = 6,
    DEEPEST = 20,
    FORKS = 12
};

/* ---- a Python, as far as the library can see ---- */

struct code {
    char head[128];
    unsigned char bytecode[64];
};
struct frame {
    struct frame *previous;
    const unsigned char *instr;
    const struct code *code;
    uint8_t owner;
};
struct thread_state {
    struct frame *newest;
    void *interpreter;
    struct frame frames[DEEPEST];
    int depth;
};
struct allocator {
    void *ctx;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *);
};

static struct code codes[CODES];
static const void *finalizing;
static __thread struct thread_state *state;
static __thread bool has_gil;
static pthread_mutex_t gil = PTHREAD_MUTEX_INITIALIZER;

static void *plain_malloc(void *ctx, size_t bytes)
{
    (void)ctx;
    return malloc(bytes);
}
static void *plain_calloc(void *ctx, size_t count, size_t bytes)
{
    (void)ctx;
    return calloc(count, bytes);
}
static void *plain_realloc(void *ctx, void *block, size_t bytes)
{
    (void)ctx;
    return realloc(block, bytes);
}
static void plain_free(void *ctx, void *block)
{
    (void)ctx;
    free(block);
}

#define PLAIN                                                                                      \
    {                                                                                              \
        NULL, plain_malloc, plain_calloc, plain_realloc, plain_free                                \
    }
static struct allocator allocators[3] = { PLAIN, PLAIN, PLAIN };

void PyMem_GetAllocator(int domain, struct allocator *out)
{
    *out = allocators[domain];
}
void PyMem_SetAllocator(int domain, const struct allocator *allocator)
{
    allocators[domain] = *allocator;
}
const char *Py_GetVersion(void)
{
    return "3.13.0 (not really)";
}

static void *thread_of_this_one(void)
{
    return state;
}
static void *thread_with_gil(void)
{
    return has_gil ? state : NULL;
}
static void *no_frame_object(void *thread, const void *frame)
{
    (void)thread;
    (void)frame;
    return NULL;
}
static void give_up(void *object)
{
    (void)object;
}
static uint32_t name_of(void *thread, char *out, uint32_t room)
{
    (void)thread;
    snprintf(out, room, "%s", "thread");
    return 6;
}
static void describe(const void *code, struct fm_heap_code *out)
{
    *out = (struct fm_heap_code){ .first_line = (uint32_t)((const struct code *)code - codes + 1) };
    out->name_bytes = out->qualname_bytes = out->file_bytes =
        (uint32_t)snprintf(out->name, sizeof out->name, "f%u", out->first_line);
    memcpy(out->qualname, out->name, sizeof out->name);
    memcpy(out->file, out->name, sizeof out->name);
}

static const struct fm_heap_layout layout = {
    .bytes = sizeof layout,
    .thread_frame = offsetof(struct thread_state, newest),
    .thread_interpreter = offsetof(struct thread_state, interpreter),
    .cframe_frame = UINT32_MAX,
    .frame_previous = offsetof(struct frame, previous),
    .frame_instr = offsetof(struct frame, instr),
    .frame_code = offsetof(struct frame, code),
    .frame_owner = offsetof(struct frame, owner),
    .owner_generator = 1,
    .owner_foreign = 3,
    .frame_object_bytes = 400,
    .code_bytecode = offsetof(struct code, bytecode),
    .finalizing = &finalizing,
    .current_thread = thread_with_gil,
    .thread_of_this = thread_of_this_one,
    .frame_object_of = no_frame_object,
    .give_up = give_up,
    .describe = describe,
    .describe_type = describe,
    .thread_name = name_of,
};

/* ---- what threads do ---- */

/* What was done, by world; live is what is left of it. */
struct done {
    _Atomic uint64_t allocated, blocks;
    _Atomic int64_t live, live_blocks;
};
static struct done done[FM_HEAP_WORLDS];
static atomic_bool in_turns; /* only one thread allocates at a time, as with a GIL */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

struct block {
    void *at;
    size_t bytes;
    int world;
    bool mapped;
};
static struct {
    pthread_mutex_t lock;
    struct block blocks[MAILBOX];
    int count;
} mailbox = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint32_t chance(uint64_t *seed, uint32_t most)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % most;
}

static void count(int world, int64_t bytes, int blocks)
{
    done[world].live += bytes;
    done[world].live_blocks += blocks;
    if (blocks > 0) {
        done[world].allocated += (uint64_t)bytes;
        done[world].blocks++;
    }
}

static void take_gil(bool take)
{
    if (take)
        pthread_mutex_lock(&gil);
    has_gil = take;
    if (!take)
        pthread_mutex_unlock(&gil);
}

static struct block make(uint64_t *seed)
{
    struct block b = { .bytes = 1 + chance(seed, 3000), .world = FM_HEAP_WORLD_C };
    switch (chance(seed, 8)) {
    case 0:
        b.at = calloc(1, b.bytes);
        break;
    case 1:
        b.at = aligned_alloc(64, b.bytes = (b.bytes + 63) / 64 * 64);
        break;
    case 2:
        b.bytes = (1 + chance(seed, 5)) * 4096;
        b.mapped = true;
        b.at = mmap(NULL, b.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        break;
    case 3:
    case 4:
        if (fm_heap.python)
            b.world = FM_HEAP_WORLD_PYTHON;
        take_gil(true);
        b.at = allocators[2].malloc(allocators[2].ctx, b.bytes);
        take_gil(false);
        break;
    default:
        b.at = malloc(b.bytes);
    }
    assert(b.at);
    memset(b.at, 1, b.bytes < 64 ? b.bytes : 64);
    count(b.world, (int64_t)b.bytes, 1);
    return b;
}

static bool is_pythons(const struct block *b)
{
    return b->world == FM_HEAP_WORLD_PYTHON;
}

static void end(struct block *b)
{
    if (!b->at)
        return;
    if (b->mapped) {
        munmap(b->at, b->bytes);
    } else if (is_pythons(b)) {
        take_gil(true);
        allocators[2].free(allocators[2].ctx, b->at);
        take_gil(false);
    } else {
        free(b->at);
    }
    count(b->world, -(int64_t)b->bytes, -1);
    b->at = NULL;
}

static void resize(struct block *b, uint64_t *seed)
{
    size_t bytes = 1 + chance(seed, 5000);
    if (!b->at || b->mapped)
        return;
    count(b->world, -(int64_t)b->bytes, -1);
    if (is_pythons(b)) {
        take_gil(true);
        b->at = allocators[2].realloc(allocators[2].ctx, b->at, bytes);
        take_gil(false);
    } else {
        b->at = realloc(b->at, bytes);
    }
    b->bytes = bytes;
    count(b->world, (int64_t)bytes, 1);
}

/* Give a block to whoever comes, and take one of another. */
static void exchange(struct block *b, uint64_t *seed)
{
    pthread_mutex_lock(&mailbox.lock);
    if (mailbox.count < MAILBOX && (mailbox.count == 0 || chance(seed, 2))) {
        mailbox.blocks[mailbox.count++] = *b;
        b->at = NULL;
    } else {
        int i = (int)chance(seed, (uint32_t)mailbox.count);
        struct block other = mailbox.blocks[i];
        mailbox.blocks[i] = *b;
        *b = other;
    }
    pthread_mutex_unlock(&mailbox.lock);
}

/* Call, return, or go on to another line. */
static void step(struct thread_state *t, uint64_t *seed)
{
    uint32_t where = chance(seed, 3);
    if (where == 0 && t->depth < DEEPEST) {
        struct frame *f = &t->frames[t->depth++];
        const struct code *code = &codes[chance(seed, CODES)];
        *f = (struct frame){ t->newest, code->bytecode + chance(seed, 6), code, 0 };
        t->newest = f;
    } else if (where == 1 && t->depth > 1) {
        t->newest = t->frames[--t->depth].previous;
    } else if (t->depth) {
        t->newest->instr = t->newest->code->bytecode + chance(seed, 6);
    }
}

static void *work(void *argument)
{
    uint64_t seed = (uintptr_t)argument;
    struct thread_state mine = { .depth = 0 };
    struct block slots[SLOTS] = { { .at = NULL } };
    bool turns = in_turns;
    state = &mine;
    for (int i = 0; i < STEPS; i++) {
        struct block *b = &slots[chance(&seed, SLOTS)];
        if (turns && i % TURN == 0)
            pthread_mutex_lock(&turn);
        if (chance(&seed, 4) == 0)
            step(&mine, &seed);
        switch (chance(&seed, 6)) {
        case 0:
            exchange(b, &seed);
            break;
        case 1:
            resize(b, &seed);
            break;
        default:
            end(b);
            *b = make(&seed);
        }
        if (turns && i % TURN == TURN - 1)
            pthread_mutex_unlock(&turn);
    }
    for (int i = 0; i < SLOTS; i += 2)
        end(&slots[i]);
    for (int i = 1; i < SLOTS; i += 2) /* the rest is never freed */
        slots[i].at = NULL;
    mine.newest = NULL;
    state = NULL;
    return NULL;
}

/* ---- what is in the store ---- */

static int failures;

static void expect(const char *what, int64_t found, int64_t expected)
{
    if (found == expected)
        return;
    failures++;
    fprintf(stderr, "%s: %ld, expected %ld\n", what, (long)found, (long)expected);
}

struct sums {
    int64_t live, live_blocks, peak, allocated, blocks;
};

static struct sums sums_of_accounts(void)
{
    const struct fm_heap_header *h = fm_heap.header;
    struct sums s = { 0 };
    for (uint64_t i = h->inherited + 1; i < h->used[FM_HEAP_ACCOUNTS]; i++) {
        const struct fm_heap_account *a = &fm_heap.accounts[i];
        s.live += a->live;
        s.live_blocks += a->live_blocks;
        s.allocated += (int64_t)a->allocated;
        s.blocks += (int64_t)a->blocks;
        s.peak += a->epoch != h->epoch || h->rising ? a->live : a->at;
    }
    return s;
}

/* What the tables of blocks and mappings have: the truth. Python's blocks have another. */
static int64_t bytes_in_tables(void)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < pieces.count; i++)
        bytes += (int64_t)(pieces.all[i].end - pieces.all[i].start);
    for (size_t i = 0; i < SHARDS; i++)
        for (size_t j = 0; j < shards[i].blocks.room; j++)
            if (shards[i].blocks.slots[j].address)
                bytes += (int64_t)shards[i].blocks.slots[j].bytes;
    return bytes;
}

/* In a child: all that it was born with is there, and what it does is counted. */
static int check_child(void)
{
    void *volatile block = malloc(1234);
    const struct fm_heap_header *h = fm_heap.header;
    failures = 0;
    struct sums s = sums_of_accounts();
    int64_t live = h->worlds[0].live + h->worlds[1].live;
    expect("child: alive in accounts", s.live, live);
    expect("child: allocated", s.allocated, 1234);
    expect("child: alive in tables", bytes_in_tables(), h->worlds[FM_HEAP_WORLD_C].live);
    free(block);
    expect("child: freed", h->worlds[FM_HEAP_WORLD_C].live, live - h->worlds[0].live - 1234);
    return failures ? 1 : 0;
}

static void fork_among_them(void)
{
    struct timespec a_moment = { .tv_nsec = 3000000 };
    for (int i = 0; i < FORKS; i++) {
        int status;
        nanosleep(&a_moment, NULL);
        pid_t pid = fork();
        if (pid == 0)
            _exit(check_child());
        waitpid(pid, &status, 0);
        expect("status of a child", status, 0);
    }
}

/* Of AddressSanitizer's own malloc a child may find a lock held by a thread that it does not have. */
#ifdef __SANITIZE_ADDRESS__
#define FORKS_AMONG_THREADS false
#else
#define FORKS_AMONG_THREADS true
#endif

static void run_threads(uint64_t seed)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(seed * 100 + (uint64_t)i));
    if (FORKS_AMONG_THREADS)
        fork_among_them();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (!FORKS_AMONG_THREADS)
        fork_among_them();
}

static void check_store(void)
{
    const struct fm_heap_header *h = fm_heap.header;
    struct sums s = sums_of_accounts();
    uint64_t sizes = 0, kind_blocks = 0, kind_bytes = 0;
    for (int i = 0; i < FM_HEAP_WORLDS; i++) {
        expect("alive", h->worlds[i].live, done[i].live);
        expect("blocks alive", h->worlds[i].live_blocks, done[i].live_blocks);
        for (int j = 0; j < FM_HEAP_SIZE_BUCKETS; j++)
            sizes += h->worlds[i].sizes[j];
        for (int j = 0; j < FM_HEAP_KINDS; j++) {
            kind_blocks += h->worlds[i].kind_blocks[j];
            kind_bytes += h->worlds[i].kind_bytes[j];
        }
    }
    int64_t blocks = (int64_t)(done[0].blocks + done[1].blocks);
    int64_t allocated = (int64_t)(done[0].allocated + done[1].allocated);
    expect("alive in accounts", s.live, done[0].live + done[1].live);
    expect("blocks alive in accounts", s.live_blocks, done[0].live_blocks + done[1].live_blocks);
    expect("allocated in accounts", s.allocated, allocated);
    expect("blocks in accounts", s.blocks, blocks);
    expect("blocks by size", (int64_t)sizes, blocks);
    expect("blocks by kind", (int64_t)kind_blocks, blocks);
    expect("bytes by kind", (int64_t)kind_bytes, allocated);
    for (int i = 0; i < FM_HEAP_LOST_COUNT; i++)
        expect("lost", (int64_t)h->lost[i], 0);
    /* Events of different threads have no order: which of them the peak has is not said. */
    int64_t apart = s.peak - h->peak;
    if (apart < -20000 * THREADS || apart > 20000 * THREADS)
        expect("peak in accounts", s.peak, h->peak);
}

int main(int argc, char **argv)
{
    char config[4200];
    assert(argc == 4);
    snprintf(config, sizeof config, "folder=%s\x1fmemory=%s", argv[1], argv[2]);
    fathom_heap_start(config);
    assert(fathom_heap_python(&layout) >= 0);
    const struct fm_heap_header *h = fm_heap.header;
    for (int i = 0; i < FM_HEAP_WORLDS; i++) { /* what was before us: stdio's, the sanitizer's */
        count(i, h->worlds[i].live, 0);
        done[i].live_blocks += h->worlds[i].live_blocks;
        for (int j = 0; j < FM_HEAP_KINDS; j++) {
            done[i].blocks += h->worlds[i].kind_blocks[j];
            done[i].allocated += h->worlds[i].kind_bytes[j];
        }
    }
    uint64_t seed = strtoull(argv[3], NULL, 10);
    for (int round = 0; round < 3; round++) {
        in_turns = round == 1;
        run_threads(seed + (uint64_t)round);
        check_store();
    }
    printf("%s\n", failures ? "failed" : "as it was done");
    return failures ? 1 : 0;
}
