/* The chunks of a live store; see live_chunks.h. */
#include "record/model/live/live_chunks.h"

#include <stdbool.h>
#include <string.h>

#include "record/capture/live.h"

void fm_live_chunks_find(struct fm_live_chunks *chunks, const void *bytes, size_t len, size_t at)
{
    while (len > at && len - at >= sizeof(struct fm_live_chunk)) {
        struct fm_live_chunk head;
        const uint8_t *start = (const uint8_t *)bytes + at;
        memcpy(&head, start, sizeof head);
        bool sized = head.bytes >= FM_LIVE_PAGE && head.bytes % FM_LIVE_PAGE == 0;
        if (head.magic != FM_LIVE_CHUNK_MAGIC || !sized) {
            /* A chunk gets its magic with its first record: without one it is empty. After a broken
             * header the search goes on page by page. */
            chunks->broken += head.magic != 0;
            at += sized && !head.magic && head.bytes <= len - at ? head.bytes : FM_LIVE_PAGE;
            continue;
        }
        size_t here = len - at < head.bytes ? len - at : head.bytes;
        uint32_t room = (uint32_t)(here - sizeof head);
        chunks->broken += here < head.bytes || head.used > head.bytes - sizeof head;
        struct fm_live_piece piece = {
            start + sizeof head, head.kind,   head.used < room ? head.used : room, room,
            head.first_id,       head.address
        };
        fm_vec_push(&chunks->all, piece);
        if (head.kind == FM_LIVE_NODES)
            fm_vec_push(&chunks->nodes, piece);
        if (head.kind == FM_LIVE_DEFS)
            chunks->definition_bytes += piece.used;
        at += head.bytes;
    }
}

static int address_order(const void *left, const void *right)
{
    const struct fm_live_piece *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

void fm_live_chunks_sort(struct fm_live_chunks *chunks)
{
    if (chunks->nodes.len)
        qsort(chunks->nodes.data, chunks->nodes.len, sizeof *chunks->nodes.data, address_order);
}

void fm_live_chunks_release(struct fm_live_chunks *chunks)
{
    fm_vec_release(&chunks->all);
    fm_vec_release(&chunks->nodes);
}

uint32_t fm_live_chunks_node(const struct fm_live_chunks *chunks, uint64_t address)
{
    size_t low = 0, high = chunks->nodes.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (chunks->nodes.data[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return UINT32_MAX;
    const struct fm_live_piece *piece = &chunks->nodes.data[low - 1];
    uint64_t offset = address - piece->address;
    if (offset < sizeof(struct fm_live_chunk))
        return UINT32_MAX;
    offset -= sizeof(struct fm_live_chunk);
    if (offset % sizeof(struct fm_live_node) || offset >= piece->used)
        return UINT32_MAX;
    uint64_t id = piece->first_id + offset / sizeof(struct fm_live_node);
    return id < UINT32_MAX ? (uint32_t)id : UINT32_MAX;
}
