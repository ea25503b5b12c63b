/* A .fathom file without its compression; see file.h. */
#include "base/varint.h"
#include "record/capture/budget.h"
#include "record/capture/format.h"
#include "record/capture/reader.h"
#include "record/capture/writer.h"
#include "record/model/file/file.h"

/* How many bytes of single calls a file has. */
static uint64_t events_bytes(int from, uint64_t len)
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

bool fm_file_copy_plain(int from, uint64_t len, int to, uint64_t most_events,
                        uint64_t *ret_left_out)
{
    struct fm_reader reader;
    struct fm_writer writer;
    struct fm_block block;
    struct fm_budget budget = fm_budget_for(len);
    bool recorded = false, foreign = false, ended = false;
    uint64_t events = events_bytes(from, len), left_out = 0;
    bool keep = events <= most_events;
    *ret_left_out = keep ? 0 : events;
    fm_writer_init(&writer, to);
    if (fm_reader_init_fd(&reader, from, len, NULL) < 0 || fm_writer_start(&writer) < 0) {
        fm_reader_release(&reader);
        return false;
    }
    while (!writer.failed && !ended && fm_reader_next(&reader, &block) &&
           fm_budget_take(&budget, block.len, 1)) {
        struct fm_cursor c = fm_cursor_over(block.data, block.len);
        recorded = recorded || block.type == FM_BLOCK_PROCESSES;
        foreign = foreign || block.type == FM_BLOCK_FLAT_ROWS || block.type == FM_BLOCK_LINE_UNIT;
        ended = block.type == FM_BLOCK_END && fm_cursor_varint(&c) == writer.blocks + left_out;
        if (block.type == FM_BLOCK_TRACE_EVENTS && !keep)
            left_out++;
        else if (ended)
            fm_writer_end(&writer);
        else
            fm_writer_block(&writer, block.type, block.data, block.len);
    }
    bool whole = recorded && !foreign && ended && reader.at == reader.len &&
                 !reader.skipped_bytes && !reader.header_damaged && !reader.failed &&
                 !writer.failed;
    fm_reader_release(&reader);
    return whole;
}
