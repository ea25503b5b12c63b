/*
 * Fuzzes what the sampler reads of a process: thread states, frames, code objects, dicts and tasks of a made-up
 * Python, of every version and build.
 *
 * The memory is honest at first: two threads, a generator, three code objects, asyncio's
 * module with a task. The input says what is wrong with it, in steps of eight bytes: which word, after how
 * many reads, and what becomes of it. So the words that matter are hit often, and memory changes while it is
 * read, as that of a running program does.
 *
 * Besides memory errors this looks for work without end: what one round reads is bounded.
 */
#include "fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watch/cpython/layout.h"
#include "watch/cpython/layout_tables.h"
#include "watch/cpython/stack.h"
#include "watch/sampler/account.h"
#include "watch/sampler/gather.h"
#include "watch/sampler/target.h"
#include "watch/sampler/threads.h"

#define BASE           0x10000u
#define IMAGE_BYTES    (128u << 10)
#define RECORD_BYTES   2304u
#define RECORD_TID     720u /* as in glibc */
#define MAX_READS      2000000u
#define MAX_READ_BYTES (4ull << 30)

struct image {
    uint8_t bytes[IMAGE_BYTES];
    uint32_t end;                  /* of what is in use */
    uint32_t words[4096], n_words; /* where something was put: offsets */
    const struct fm_layout *l;
    uint64_t reads, read_bytes;
    const uint8_t *patches;
    size_t n_patches, next_patch;
};

static struct image image;

/* --- honest memory ------------------------------------------------------------------------------ */

static fm_addr room(uint32_t bytes)
{
    fm_addr at = BASE + image.end;
    image.end += (bytes + 15) & ~15u;
    if (image.end > IMAGE_BYTES)
        abort();
    return at;
}

static void put(fm_addr at, uint32_t offset, const void *value, uint32_t bytes)
{
    if (offset == FM_ABSENT)
        return;
    uint32_t place = (uint32_t)(at - BASE) + offset;
    memcpy(image.bytes + place, value, bytes);
    if (image.n_words < FM_COUNT(image.words))
        image.words[image.n_words++] = place;
}

static void put_word(fm_addr at, uint32_t offset, uint64_t value)
{
    put(at, offset, &value, 8);
}

static void put_int(fm_addr at, uint32_t offset, uint32_t value)
{
    put(at, offset, &value, 4);
}

static void put_byte(fm_addr at, uint32_t offset, uint8_t value)
{
    put(at, offset, &value, 1);
}

/* A type, of which an object has its name and its flags. */
static fm_addr make_type(const char *name, uint64_t flags)
{
    fm_addr type = room(1024), text = room(32);
    memcpy(image.bytes + (text - BASE), name, strlen(name) + 1);
    put_word(type, image.l->type_name, text);
    put_word(type, image.l->type_flags, flags);
    return type;
}

static fm_addr make_object(fm_addr type, uint32_t bytes)
{
    fm_addr at = room(bytes);
    put_word(at, image.l->object_type, type);
    return at;
}

static fm_addr str_type, bytes_type, code_type, dict_type, set_type, int_type;

static fm_addr make_text(const char *text)
{
    const struct fm_layout *l = image.l;
    fm_addr at = make_object(str_type, l->unicode_ascii_data + 64);
    put_word(at, l->unicode_length, strlen(text));
    put_int(at, l->unicode_state, (1u | 8u | 16u) << l->unicode_kind_shift);
    put(at, l->unicode_ascii_data, text, (uint32_t)strlen(text));
    return at;
}

static fm_addr make_bytes(const void *data, uint32_t len)
{
    fm_addr at = make_object(bytes_type, image.l->bytes_data + len + 1);
    put_word(at, image.l->var_size, len);
    put(at, image.l->bytes_data, data, len);
    return at;
}

static fm_addr make_code(const char *name, uint32_t flags)
{
    static const uint8_t bytecode[64] = { 151, 0, 9, 0 },
                         table[] = { 0x80, 0x04, 0xd8, 0x04, 0x05 };
    const struct fm_layout *l = image.l;
    fm_addr text = make_text(name), file = make_text("app.py");
    fm_addr lines = make_bytes(table, sizeof table);
    fm_addr separate = l->code_units == FM_ABSENT ? make_bytes(bytecode, sizeof bytecode) : 0;
    fm_addr at = make_object(code_type, l->code_size + (uint32_t)sizeof bytecode + 64);
    put_word(at, l->code_filename, file);
    put_word(at, l->code_name, text);
    put_word(at, l->code_qualname, text);
    put_word(at, l->code_linetable, lines);
    put_int(at, l->code_first_line, 7);
    put_int(at, l->code_flags, flags);
    put_int(at, l->code_nlocalsplus, 2);
    put_word(at, l->code_units, sizeof bytecode / 2);
    if (separate)
        put_word(at, l->code_bytecode, separate);
    else
        put(at, l->code_bytecode, bytecode, sizeof bytecode);
    return at;
}

/* Five slots: as make_code() says. */
static uint32_t frame_bytes(void)
{
    return (image.l->frame_localsplus & ~7u) + 5 * 8;
}

static void put_frame(fm_addr at, fm_addr code, fm_addr previous, uint8_t owner, bool executing)
{
    const struct fm_layout *l = image.l;
    put_word(at, l->frame_previous, previous);
    put_word(at, l->frame_code, code);
    if (l->frames == FM_FRAMES_HEAP)
        put_int(at, l->frame_instr, 2);
    else
        put_word(at, l->frame_instr, code + l->code_bytecode + 4);
    put_byte(at, l->frame_owner, owner);
    if (l->frames == FM_FRAMES_HEAP)
        put_byte(at, l->frame_state, fm_layout_minor(l) == 9); /* it executes: 1, and 0 in 3.10 */
    if (fm_layout_minor(l) < 14)
        put_int(at, l->frame_stackpointer, executing ? UINT32_MAX : 3);
    else
        put_word(at, l->frame_stackpointer, at + l->frame_localsplus + 24);
}

/* A frame of the interpreter on top of `below`; before 3.12 there is none. */
static fm_addr make_boundary(fm_addr below, fm_addr code)
{
    const struct fm_layout *l = image.l;
    if (l->owner_boundary == UINT8_MAX)
        return below;
    fm_addr at = room(l->frame_size + 64);
    put_frame(at, code, below, l->owner_boundary, false);
    return at;
}

/* Three frames, a generator and three more, each on top of one of the interpreter. Returns the newest. */
static fm_addr make_stack(fm_addr thread, const fm_addr *codes)
{
    const struct fm_layout *l = image.l;
    fm_addr below = 0;
    for (int i = 0; i < 2; i++) {
        below = make_boundary(below, codes[0]);
        for (int k = 0; k < 3; k++) {
            fm_addr frame = make_object(code_type, frame_bytes() + 64);
            put_frame(frame, codes[k % 2], below, 0, i && k == 2);
            below = frame;
        }
        if (i)
            continue;
        below = make_boundary(below, codes[0]);
        fm_addr generator = room(l->frame_size + 128);
        put_frame(generator, codes[2], below, l->owner_generator, true);
        below = generator;
    }
    put_word(thread, l->thread_chunk, thread); /* it has begun */
    return below;
}

static fm_addr make_thread(fm_addr interp, fm_addr next, const fm_addr *codes)
{
    const struct fm_layout *l = image.l;
    fm_addr at = room(l->thread_size);
    put_word(at, l->thread_interp, interp);
    put_word(at, l->thread_next, next);
    fm_addr record = room(RECORD_BYTES); /* of the C library */
    put_int(record, RECORD_TID, (uint32_t)gettid());
    put_word(at, l->thread_id, record);
    put_word(at, l->thread_native_id, (uint64_t)gettid());
    fm_addr newest = make_stack(at, codes);
    if (l->frames == FM_FRAMES_CFRAME) {
        fm_addr cframe = room(64);
        put_word(cframe, l->cframe_frame, newest);
        newest = cframe;
    }
    put_word(at, l->thread_frame, newest);
    return at;
}

/* A dict with a general table of one entry each. */
static fm_addr make_dict(const char *key, fm_addr value)
{
    const struct fm_layout *l = image.l;
    fm_addr keys = room(l->keys_index + 8 + 8 * 24), at = make_object(dict_type, 128);
    put_word(at, l->dict_used, 1);
    put_word(at, l->dict_keys, keys);
    put_word(at, l->dict_values, 0);
    if (l->keys_log2_index == FM_ABSENT) {
        put_word(keys, l->keys_log2_size, 8);
    } else {
        put_byte(keys, l->keys_log2_size, 3);
        put_byte(keys, l->keys_log2_index, 3);
    }
    put_byte(keys, l->keys_kind, 0);
    put_word(keys, l->keys_entries, 1);
    put_word(keys, l->keys_index + 16, make_text(key));
    put_word(keys, l->keys_index + 24, value);
    return at;
}

static fm_addr make_set(fm_addr member)
{
    const struct fm_layout *l = image.l;
    fm_addr table = room(8 * 16), at = make_object(set_type, 256);
    put_word(at, l->set_used, 1);
    put_word(at, l->set_mask, 7);
    put_word(at, l->set_table, table);
    put_word(table, 32, member);
    put_word(table, 40, 1);
    return at;
}

/* An object with one attribute in a plain __dict__. */
static fm_addr make_instance(const char *type_name, const char *name, fm_addr value)
{
    fm_addr type = make_type(type_name, 0), at = make_object(type, 256);
    put_word(type, image.l->type_dictoffset, 128);
    put_word(at, 128, make_dict(name, value));
    return at;
}

/* Before 3.14: asyncio.tasks._all_tasks.data = {weak reference to a task}; later the module is all. */
static fm_addr make_modules(const fm_addr *codes)
{
    const struct fm_layout *l = image.l;
    fm_addr coroutine = make_object(make_type("coroutine", 0), 512);
    fm_addr task = make_object(make_type("_asyncio.Task", 0), 256),
            weak = make_object(int_type, 64);
    fm_addr module = make_object(int_type, 64);
    if (l->frames == FM_FRAMES_HEAP) {
        fm_addr frame = make_object(code_type, l->frame_size + 64);
        put_frame(frame, codes[2], 0, 0, false);
        put_word(coroutine, l->gen_frame, frame);
    } else {
        put_frame(coroutine + l->gen_frame, codes[2], 0, l->owner_generator, false);
    }
    fm_addr name = make_text("Task-1");
    /* Behind its state (0: pending), in every version its coroutine and its name follow each other. */
    for (uint32_t offset = l->object_size + 88; offset < 216; offset += 8)
        put_word(task, offset, (offset % 16 == 8) == (fm_layout_minor(l) != 10) ? coroutine : name);
    put_word(weak, l->object_size, task);
    put_word(module, l->object_size,
             make_dict("_all_tasks", make_instance("WeakSet", "data", make_set(weak))));
    return make_dict("asyncio.tasks", module);
}

static fm_addr make_runtime(void)
{
    const struct fm_layout *l = image.l;
    fm_addr runtime = room(4096), interp = room(l->interp_size + 64), gil = room(l->gil_size);
    fm_addr codes[3];
    str_type = make_type("str", FM_TYPE_STR);
    bytes_type = make_type("bytes", FM_TYPE_BYTES);
    code_type = make_type("code", 0);
    dict_type = make_type("dict", FM_TYPE_DICT);
    set_type = make_type("set", 0);
    int_type = make_type("int", FM_TYPE_LONG);
    codes[0] = make_code("main", 0);
    codes[1] = make_code("work", 0);
    codes[2] = make_code("values", 0x20);
    fm_addr older = make_thread(interp, 0, codes), thread = make_thread(interp, older, codes);
    put_word(older, l->thread_prev, thread);
    put_word(runtime, l->runtime_interpreters_head, interp);
    put_word(interp, l->interp_threads_head, thread);
    put_word(interp, l->interp_next, 0);
    put_word(interp, l->interp_gil, gil);
    put_word(interp, l->interp_modules, make_modules(codes));
    put_word(interp, l->interp_code_generation, 1);
    put_int(gil, l->gil_locked, 1);
    put_word(gil, l->gil_holder, thread);
    return runtime;
}

/* --- what goes wrong with it -------------------------------------------------------------------- */

enum { PATCH_BYTES = 8 };

/* Word (2 bytes), after how many reads (2), kind (1), value (3). */
static void apply(const uint8_t *patch)
{
    static const uint64_t limits[] = { 0,         1,          7,         8,        UINT64_MAX,
                                       INT64_MAX, UINT32_MAX, INT32_MAX, 1u << 20, UINT64_MAX << 3,
                                       64u << 20, 24 };
    uint32_t place = image.words[(patch[0] | patch[1] << 8) % image.n_words];
    uint32_t value = patch[5] | patch[6] << 8 | (uint32_t)patch[7] << 16;
    uint64_t word;
    memcpy(&word, image.bytes + place, 8);
    switch (patch[4] % 7) {
    case 0:
        return;
    case 1:
        word = limits[value % FM_COUNT(limits)];
        break;
    case 2: /* what another word points to */
        memcpy(&word, image.bytes + image.words[value % image.n_words], 8);
        break;
    case 3: /* another place */
        word = BASE + (uint64_t)value % image.end;
        break;
    case 4:
        word += (uint64_t)(value % 512) - 256;
        break;
    case 5:
        word ^= 1ull << value % 64;
        break;
    case 6: /* a word that is somewhere: objects of another kind */
        word = BASE + image.words[value % image.n_words];
        break;
    }
    memcpy(image.bytes + place, &word, 8);
}

static void apply_due(void)
{
    for (; image.next_patch < image.n_patches; image.next_patch++) {
        const uint8_t *patch = image.patches + image.next_patch * PATCH_BYTES;
        if ((uint64_t)(patch[2] | patch[3] << 8) % 256 > image.reads)
            return;
        apply(patch);
    }
}

static int read_image(const struct fm_remote *remote, const struct fm_span *spans, int n)
{
    (void)remote;
    for (int i = 0; i < n; i++) {
        apply_due();
        image.read_bytes += spans[i].len;
        if (++image.reads > MAX_READS || image.read_bytes > MAX_READ_BYTES)
            abort(); /* no end in sight */
        if (spans[i].at < BASE || spans[i].at - BASE > IMAGE_BYTES ||
            spans[i].len > IMAGE_BYTES - (spans[i].at - BASE))
            return i ? i : -EFAULT;
        memcpy(spans[i].into, image.bytes + (spans[i].at - BASE), spans[i].len);
    }
    return n;
}

/* --- what is done with it ----------------------------------------------------------------------- */

/* What to read of each object, as fm_layout_find() computes it. */
static void measure(struct fm_layout *l)
{
    l->interp_size = l->thread_size = l->frame_size = l->code_size = 0;
#define X(field)                                                                                   \
    {                                                                                              \
        uint32_t *size = strncmp(#field, "interp_", 7) == 0   ? &l->interp_size                    \
                         : strncmp(#field, "thread_", 7) == 0 ? &l->thread_size                    \
                         : strncmp(#field, "frame_", 6) == 0  ? &l->frame_size                     \
                         : strncmp(#field, "code_", 5) == 0   ? &l->code_size                      \
                                                              : NULL;                                \
        if (size && size != &l->field && l->field != FM_ABSENT && l->field < 65536 &&              \
            l->field + 8 > *size)                                                                  \
            *size = l->field + 8;                                                                  \
    }
    FM_LAYOUT_LIST(X)
#undef X
    if (l->frame_size > l->frame_localsplus && l->frames != FM_FRAMES_HEAP)
        l->frame_size = l->frame_localsplus;
    if (l->code_units != FM_ABSENT)
        l->code_size = l->code_bytecode;
}

static struct fm_target *make_target(const struct fm_layout *layout, fm_addr runtime)
{
    static const struct fm_remote_source source = { read_image };
    struct fm_target *t = fm_calloc(1, sizeof *t);
    t->pid = getpid();
    t->remote = (struct fm_remote){ &source, 0, NULL };
    t->runtime.at = runtime;
    t->runtime.version_hex = layout->version_hex;
    t->runtime.layout = *layout;
    t->options =
        (struct fm_target_options){ .way = FM_WAY_PLAIN, .tasks = true, .interval_ns = 200000000 };
    fm_codes_init(&t->codes, &t->remote, &t->runtime.layout);
    t->looker = (struct fm_looker){ .remote = &t->remote,
                                    .layout = &t->runtime.layout,
                                    .codes = &t->codes };
    t->fds = fm_fd_kinds_new(t->pid);
    t->details = fm_strings_new();
    t->tasks = fm_task_reader_new(&t->runtime, &t->remote, NULL);
    return t;
}

/* With nothing wrong every stack is whole: three frames, the generator, three frames. */
static void expect_honest(const struct fm_target *t)
{
    unsigned minor = fm_layout_minor(&t->runtime.layout);
    size_t threads = 1;                /* the other one has no thread of the kernel */
    size_t tasks = minor < 14 ? 1 : 0; /* later ones need a file with .AsyncioDebug */
    size_t whole = 0;
    for (size_t i = 0; i < t->tally.rows.len; i++)
        whole += t->tally.rows.data[i].n == 7 && !t->tally.rows.data[i].partial;
    if (t->live.len != threads || whole != threads || t->tally.rows.len != threads + tasks ||
        t->counts.samples != 3 * threads || t->counts.partial || t->counts.lost) {
        fprintf(
            stderr,
            "honest memory of 3.%u: %zu threads, %zu rows, %zu whole; %lu samples, %lu partial, %lu lost\n",
            minor, t->live.len, t->tally.rows.len, whole, (unsigned long)t->counts.samples,
            (unsigned long)t->counts.partial, (unsigned long)t->counts.lost);
        abort();
    }
}

static void sample(const struct fm_layout *layout, fm_addr runtime)
{
    struct fm_target *t = make_target(layout, runtime);
    struct fm_account *account = fm_account_new();
    struct fm_stack stack = { 0 };
    struct fm_seat seat = { .cpu = -1 };
    bool there = true;
    for (uint64_t i = 1; i <= 3 && there; i++) {
        image.reads = image.reads < 256 ? image.reads : 256; /* the bound is one round's */
        image.read_bytes = 0;
        there = fm_target_round(t, &seat, i * 200000000u);
    }
    for (size_t i = 0; i < t->live.len; i++)
        fm_stack_read(&t->runtime, &t->remote, t->live.data[i]->look.thread, &stack);
    fm_stack_release(&stack);
    if (!image.n_patches)
        expect_honest(t);
    struct fm_gather_settings settings = { .interval_ns = 1000000 };
    struct fm_gather_source source = { t, account };
    fm_account_take(account, t);
    fm_account_settle(account);
    fm_profile_free(fm_gather(&source, 1, &settings));
    fm_account_free(account);
    fm_target_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct fm_layout layout = layout_tables[data[0] % FM_COUNT(layout_tables)];
    measure(&layout);
    memset(&image, 0, sizeof image);
    image.l = &layout;
    fm_addr runtime = make_runtime();
    image.patches = data + 1;
    image.n_patches = (size - 1) / PATCH_BYTES;
    sample(&layout, runtime);
    return 0;
}

/* Of each layout: nothing wrong, and many things that are no change until they are mutated. */
bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    fm_buffer_clear(out);
    if (n >= 4 * FM_COUNT(layout_tables))
        return false;
    fm_buffer_add_char(out, (char)(n % FM_COUNT(layout_tables)));
    for (unsigned i = 0; i < 12 * (n / FM_COUNT(layout_tables)); i++) {
        uint32_t mix = (i + 1) * 2654435761u + n * 40503u;
        uint8_t patch[PATCH_BYTES] = { (uint8_t)mix,
                                       (uint8_t)(mix >> 8 & 3),
                                       (uint8_t)(i * 9),
                                       0,
                                       (uint8_t)(i % 3 ? 0 : mix >> 16),
                                       (uint8_t)(mix >> 24),
                                       (uint8_t)(mix >> 5),
                                       0 };
        fm_buffer_add(out, patch, sizeof patch);
    }
    return true;
}
