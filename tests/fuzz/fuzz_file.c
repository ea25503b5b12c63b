/*
 * Fuzzes the reader of .fathom files. Random changes rarely survive the checksums, so an input
 * whose first byte is even is a list of blocks (type, length, payload) that get valid headers here;
 * one whose first byte is odd is a file as it is (the magic's first byte is odd).
 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "record/capture/format.h"
#include "record/model/derive/edit.h"
#include "record/model/derive/flat.h"
#include "record/model/file/file.h"
#include "record/model/trace/lanes/timeline.h"

static void put_u32(struct fm_buffer *b, uint32_t value)
{
    const uint8_t bytes[] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                              (uint8_t)(value >> 24) };
    fm_buffer_add(b, bytes, 4);
}

static void put_block(struct fm_buffer *b, uint8_t type, const void *payload, uint32_t bytes)
{
    size_t head = b->len;
    put_u32(b, FM_BLOCK_SYNC);
    put_u32(b, type); /* and codec 0 */
    put_u32(b, bytes);
    put_u32(b, bytes);
    put_u32(b, fm_crc32c(0, payload, bytes));
    put_u32(b, fm_crc32c(0, b->data + head, 20));
    fm_buffer_add(b, payload, bytes);
}

static void wrap(struct fm_buffer *b, const uint8_t *data, size_t size)
{
    fm_buffer_add(b, FM_FILE_MAGIC, FM_FILE_MAGIC_BYTES);
    put_u32(b, FM_FILE_MAJOR);
    put_u32(b, fm_crc32c(0, b->data, 12));
    while (size >= 3) {
        uint32_t bytes = data[1] | (uint32_t)data[2] << 8;
        if (bytes > size - 3)
            bytes = (uint32_t)(size - 3);
        put_block(b, data[0], data + 3, bytes);
        data += 3 + bytes;
        size -= 3 + bytes;
    }
}

static bool match_odd(const struct fm_profile *p, uint32_t func, void *data)
{
    (void)p;
    (void)data;
    return func % 2;
}

/* Spans lie within their lane; what stretches have adds up to what the whole has. */
static bool check_span(void *lane, const struct fm_time_span *span)
{
    const struct fm_lane *own = lane;
    if (span->begin_ns > span->end_ns || span->end_ns > own->end_ns)
        abort();
    return true;
}

static int64_t samples_of(struct fm_timeline *t, uint64_t from_ns, uint64_t to_ns)
{
    struct fm_profile *part = fm_timeline_profile(t, from_ns, to_ns, NULL);
    int64_t sum = 0;
    for (uint32_t i = 0; part && i < part->nodes.len; i++)
        sum = fm_sum(sum, fm_profile_value(part, FM_METRIC_SAMPLES, i));
    fm_profile_free(part);
    return sum;
}

static void use_order(struct fm_profile *p)
{
    struct fm_timeline *t = p->order.lanes.len ? fm_timeline_open(p, NULL) : NULL;
    struct fm_cells cells = { 0 };
    if (!t)
        return;
    uint64_t length_ns = fm_timeline_length_ns(t), middle_ns = length_ns / 3;
    for (size_t i = 0; i < fm_timeline_lanes(t) && i < 8; i++) {
        const struct fm_lane *lane = fm_timeline_lane(t, i);
        if (lane->kind == FM_LANE_SAMPLED)
            fm_timeline_spans(t, i, 0, length_ns, check_span, (void *)lane, NULL);
        fm_timeline_cells(t, i, middle_ns, length_ns, length_ns / 7, &cells, NULL);
    }
    if (samples_of(t, 0, middle_ns) + samples_of(t, middle_ns, length_ns) !=
        samples_of(t, 0, length_ns))
        abort();
    fm_cells_release(&cells);
    fm_timeline_free(t);
    fm_sample_order_fit(&p->order, 100);
}

/* Whatever loads must be usable. */
static void use(struct fm_profile *p)
{
    static int sink = -1;
    if (sink < 0)
        sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct fm_profile *shaped[] = { fm_profile_fold(p, match_odd, NULL),
                                    fm_profile_filter(p, match_odd, NULL),
                                    fm_profile_root(p, match_odd, NULL) };
    for (size_t i = 0; i < FM_COUNT(shaped); i++) {
        fm_flat_free(fm_flat_new(shaped[i], NULL));
        fm_profile_merge(shaped[i], p);
        fm_profile_free(shaped[i]);
    }
    struct fm_moment from = { true, 20 }, to = { true, 100 };
    struct fm_shown shown[2];
    fm_history_show(p, &from, &to, &shown[0], &shown[1]);
    fm_flat_free(fm_flat_new(p, NULL));
    struct fm_regions regions = fm_regions_combined(p, FM_NONE);
    for (size_t i = 0; i < regions.rows.len; i++)
        if (regions.rows.data[i].around != FM_NONE && regions.rows.data[i].around >= i)
            abort();
    fm_regions_release(&regions);
    use_order(p);
    if (fm_file_save(p, sink, NULL))
        abort();
    fm_profile_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fm_autobuffer b = FM_BUFFER_INIT;
    struct fm_error err = FM_ERROR_INIT;
    if (size && data[0] % 2)
        fm_buffer_add(&b, data, size);
    else if (size)
        wrap(&b, data + 1, size - 1);
    struct fm_profile *p = fm_file_load(fm_buffer_text(&b), b.len, "input", &err);
    if (!p && !err.text[0])
        abort(); /* a refusal must say why */
    if (p)
        use(p);
    return 0;
}

static void seed_block(struct fm_buffer *b, uint8_t type, uint8_t bytes, const char *payload)
{
    fm_buffer_add_char(b, (char)type);
    fm_buffer_add_char(b, (char)bytes);
    fm_buffer_add_char(b, '\0');
    fm_buffer_add(b, payload, bytes);
}

#define SEED(b, type, payload) seed_block(b, type, sizeof(payload) - 1, payload)

bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    fm_autobuffer b = FM_BUFFER_INIT;
    fm_buffer_add_char(&b, '\0');
    /* clang-format off */
    SEED(&b, FM_BLOCK_STRINGS, "\1\5" "\1f" "\5total" "\5calls" "\7samples" "\3gil");
    SEED(&b, FM_BLOCK_METRICS, "\0\4\1" "\2\3\4\5");
    SEED(&b, FM_BLOCK_RUN, "\0\1\2" "\1\2");
    SEED(&b, FM_BLOCK_PROCESSES, "\0\2\3" "\7\10" "\1\7" "\1\1");
    SEED(&b, FM_BLOCK_PROCESSES,
         "\2\1\27" "\11\1\1\1\1\1\5\5\6\0\51\0\0\0\0\0" "\2\5\6\7\1\2\3");
    SEED(&b, FM_BLOCK_FUNCTIONS, "\0\2\7" "\0\1\0\2\3\4\1\1\1\1\2\2\0\0");
    SEED(&b, FM_BLOCK_THREADS, "\0\1\3" "\0\5\1");
    SEED(&b, FM_BLOCK_NODES, "\0\5\2" "\0\1\1\2\4" "\0\0\1\0\1");
    SEED(&b, FM_BLOCK_VALUES, "\0\5\2" "\0\1" "\0\64\24\22\20" "\0\2\4\2\2");
    SEED(&b, FM_BLOCK_VALUES, "\0\5\2" "\2\3" "\0\4\2\2\6" "\2\2\4\2\2");
    SEED(&b, FM_BLOCK_FLAT_ROWS, "\0\2\12" "\0\1" "\2\2\2\2\0\0\4\4\4\4\0\0\0\0\0\0\1\0");
    SEED(&b, FM_BLOCK_FLAT_EDGES, "\0\1\6" "\0\1\2\2\4\4");
    SEED(&b, FM_BLOCK_LINE_MARKS, "\0\1\1" "\1");
    SEED(&b, FM_BLOCK_LINE_UNIT, "\0\1\1" "\x8d\xdb\xd7\x85\xfa\xde\xb1\xd8\x3e");
    SEED(&b, FM_BLOCK_LINES, "\0\2\11" "\0\1\0\1\5\6\2\2\10\10\4\4\2\2\4\4\0\0");
    SEED(&b, FM_BLOCK_LINE_VISITS, "\0\2\3" "\0\1\4\5\3\3");
    SEED(&b, FM_BLOCK_LINE_STATES, "\0\1\12" "\1\6\2\2\4\0\0\2\0\2");
    SEED(&b, FM_BLOCK_SPOTS, "\0\2\10" "\3\0\0\1\5\5\5\6\1\2\4\3\2\2\4\4");
    SEED(&b, FM_BLOCK_WAITS, "\0\2\7" "\3\3\0\0\5\5\2\5\1\0\2\2\4\4");
    SEED(&b, FM_BLOCK_RESIDENTS, "\0\1\17" "\1\0\7\66\4\2\2\4\4\2\2\4\4\2\2");
    SEED(&b, FM_BLOCK_RESERVES, "\0\1\5" "\1\0\1\10\4");
    SEED(&b, FM_BLOCK_SOURCES, "\0\1\3" "\1\1\2");
    SEED(&b, FM_BLOCK_NOTES, "\0\1\4" "\1\1\5\2");
    SEED(&b, FM_BLOCK_HISTORIES, "\0\1\4" "\1\5\100\3");
    SEED(&b, FM_BLOCK_HISTORY_CONTEXTS, "\0\2\2" "\0\0" "\1\2");
    SEED(&b, FM_BLOCK_HISTORY_CHANGES, "\0\3\5" "\0\0\0" "\4\0\2" "\0\2\1" "\10\6\3" "\2\2\1");
    SEED(&b, FM_BLOCK_MEMORY_MARKS, "\0\1\10" "\1\1\1\5\11\3\4\7");
    SEED(&b, FM_BLOCK_REGIONS, "\0\2\15" "\1\0" "\0\1" "\1\2" "\2\4\0\2\10\6\0\2\2\2\4\4" "\1\0"
         "\6\6\2\2\4\4");
    SEED(&b, FM_BLOCK_END, "\32");
    SEED(&b, FM_BLOCK_SAMPLE_ROUNDS, "\0\3\3" "\1\1\1" "\2\24\24" "\20\120\144");
    SEED(&b, FM_BLOCK_SAMPLE_LANES, "\0\1\5" "\0" "\1" "\12" "\1" "\3");
    SEED(&b, FM_BLOCK_SAMPLE_ITEMS, "\0\3\4" "\0\0\0" "\2\2\3" "\1\2\0" "\4\5\1");
    /* clang-format on */
    fm_buffer_clear(out);
    if (n == 0)
        fm_buffer_add(out, b.data, b.len);
    else if (n == 1)
        wrap(out, (const uint8_t *)b.data + 1, b.len - 1);
    return n < 2;
}
