/* A .fathom file without its compression; see file.h. */
#include <unistd.h>

#include "base/buffer.h"
#include "base/varint.h"
#include "record/capture/budget.h"
#include "record/capture/format.h"
#include "record/capture/reader.h"
#include "record/capture/writer.h"
#include "record/model/file/file.h"
#include "record/model/trace/pack/levels.h"
#include "record/model/trace/pack/payload.h"
#include "record/model/trace/traces.h"

#define PLACED       ((uint64_t)1 << FM_BLOCK_TRACE_EVENTS | (uint64_t)1 << FM_BLOCK_TRACE_LEVELS)
#define COARSE_LEVEL 4 /* buckets of some 16 ms: from a minute on enough for all of the timeline */

uint64_t fm_file_events_bytes(int from, uint64_t len)
{
    struct fm_reader reader;
    struct fm_block block;
    uint64_t sum = 0;
    if (fm_reader_init_fd(&reader, from, len, NULL) == FM_OK) {
        reader.wanted = reader.placed = (uint64_t)1 << FM_BLOCK_TRACE_EVENTS;
        while (fm_reader_next(&reader, &block))
            sum += block.stored;
    }
    fm_reader_release(&reader);
    return sum;
}

struct plain_copy {
    int from;
    struct fm_writer writer;
    struct fm_plain_choice *choice;
    struct fm_buffer payload, away;
};

static bool read_at(struct plain_copy *copy, uint64_t at, size_t len)
{
    fm_buffer_clear(&copy->payload);
    fm_buffer_reserve(&copy->payload, len);
    copy->payload.len = len;
    for (size_t got = 0; got < len;) {
        ssize_t more = pread(copy->from, copy->payload.data + got, len - got, (off_t)(at + got));
        if (more <= 0)
            return false;
        got += (size_t)more;
    }
    return true;
}

/* Single calls that were chosen, and coarse levels of detail: the first picture needs them. All levels, if
 * nothing can be fetched later. */
static bool is_kept(const struct plain_copy *copy, const struct fm_block *block, uint64_t at,
                    const char *head, size_t head_len)
{
    struct fm_plain_choice *choice = copy->choice;
    struct fm_cursor c = fm_cursor_over((const uint8_t *)head, head_len);
    struct fm_level_facts facts;
    if (block->type == FM_BLOCK_TRACE_EVENTS)
        return choice->keeps(choice->context, at);
    return !choice->elsewhere || !fm_level_facts(&facts, &c) || facts.top >= COARSE_LEVEL;
}

/* A payload of which the reader gave only the place: all of it, or its head. */
static bool copy_placed(struct plain_copy *copy, const struct fm_block *block)
{
    struct fm_plain_choice *choice = copy->choice;
    uint64_t at = block->offset + FM_BLOCK_HEADER_BYTES;
    size_t head, head_len;
    if (block->len < 4 || !fm_payload_head(block->data, block->len, &head, &head_len) ||
        head + head_len > block->stored || !read_at(copy, at, head + head_len))
        return false;
    if (is_kept(copy, block, at, copy->payload.data + head, head_len))
        return read_at(copy, at, block->stored) &&
               fm_writer_block(&copy->writer, block->type, (uint8_t *)copy->payload.data,
                               copy->payload.len) == 0;
    fm_buffer_clear(&copy->away);
    fm_buffer_add(&copy->away, block->data, 4);
    copy->away.data[3] |= (char)(FM_TRACE_AWAY >> 24);
    fm_buffer_add_varint(&copy->away, choice->elsewhere ? at : 0);
    fm_buffer_add_varint(&copy->away, choice->elsewhere ? block->stored : 0);
    fm_buffer_add_varint(&copy->away, head_len);
    fm_buffer_add(&copy->away, copy->payload.data + head, head_len);
    choice->left_out += block->stored;
    return fm_writer_block(&copy->writer, block->type, (uint8_t *)copy->away.data,
                           copy->away.len) == 0;
}

bool fm_file_copy_plain(int from, uint64_t len, int to, struct fm_plain_choice *choice)
{
    struct fm_reader reader;
    struct plain_copy copy = { .from = from, .choice = choice };
    struct fm_writer *writer = &copy.writer;
    struct fm_block block;
    struct fm_budget budget = fm_budget_for(len);
    bool recorded = false, foreign = false, ended = false, good = true;
    choice->left_out = 0;
    fm_writer_init(writer, to);
    if (fm_reader_init_fd(&reader, from, len, NULL) < 0 || fm_writer_start(writer) < 0) {
        fm_reader_release(&reader);
        return false;
    }
    reader.placed = choice->keeps ? PLACED : 0;
    while (good && !writer->failed && !ended && fm_reader_next(&reader, &block) &&
           fm_budget_take(&budget, block.len, 1)) {
        struct fm_cursor c = fm_cursor_over(block.data, block.len);
        recorded = recorded || block.type == FM_BLOCK_PROCESSES;
        foreign = foreign || block.type == FM_BLOCK_FLAT_ROWS || block.type == FM_BLOCK_LINE_UNIT;
        ended = block.type == FM_BLOCK_END && fm_cursor_varint(&c) == writer->blocks;
        if (reader.placed >> block.type & 1)
            good = copy_placed(&copy, &block);
        else if (ended)
            fm_writer_end(writer);
        else
            fm_writer_block(writer, block.type, block.data, block.len);
    }
    bool whole = good && recorded && !foreign && ended && reader.at == reader.len &&
                 !reader.skipped_bytes && !reader.header_damaged && !reader.failed &&
                 !writer->failed;
    fm_buffer_release(&copy.payload);
    fm_buffer_release(&copy.away);
    fm_reader_release(&reader);
    return whole;
}
