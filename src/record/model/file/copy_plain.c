/* A .fathom file without its compression; see file.h. */
#include "base/varint.h"
#include "record/capture/budget.h"
#include "record/capture/format.h"
#include "record/capture/reader.h"
#include "record/capture/writer.h"
#include "record/model/file/file.h"

bool fm_file_copy_plain(int from, uint64_t len, int to)
{
    struct fm_reader reader;
    struct fm_writer writer;
    struct fm_block block;
    struct fm_budget budget = fm_budget_for(len);
    bool recorded = false, foreign = false, ended = false;
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
        ended = block.type == FM_BLOCK_END && fm_cursor_varint(&c) == writer.blocks;
        fm_writer_block(&writer, block.type, block.data, block.len);
    }
    bool whole = recorded && !foreign && ended && reader.at == reader.len &&
                 !reader.skipped_bytes && !reader.header_damaged && !reader.failed &&
                 !writer.failed;
    fm_reader_release(&reader);
    return whole;
}
