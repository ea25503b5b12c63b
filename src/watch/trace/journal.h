/*
 * What was taken out of a trace and is not packed yet: PID.N.pending, beside PID.N.packed.
 *
 * A packer gathers the events of many chunks before it makes a block of them, but a chunk is given back
 * to the process as soon as it is taken. So that a launcher which is killed loses nothing, each chunk is
 * appended here first. When all that was given to the packer is in blocks, the packed file gets a mark
 * with the number of the journal (FM_JOURNAL_BLOCK), and the journal begins anew with the next number. Whoever
 * comes later believes the packed file up to its last mark, and takes the rest from the journal if that
 * has a higher number.
 *
 * Nothing in it is trusted. It never leaves the machine.
 */
#ifndef FM_WATCH_TRACE_JOURNAL_H
#define FM_WATCH_TRACE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/capture/live_trace.h"

#define FM_JOURNAL_SUFFIX ".pending"
#define FM_JOURNAL_BLOCK  62u        /* the type of the mark; its payload is the number, u64 */
#define FM_JOURNAL_BYTES  (8u << 20) /* then it is time for a mark */

struct fm_journal {
    int fd;
    uint64_t number; /* from 1 on */
    uint64_t bytes;
};

struct fm_journal_entry {
    uint32_t thread, tid, last;
    uint32_t count; /* words that follow */
    uint64_t sequence, ticks, ns;
};

/* Begin in an empty file; takes the descriptor. False if it cannot be written. */
bool fm_journal_begin(struct fm_journal *journal, int fd);
void fm_journal_release(struct fm_journal *journal);

bool fm_journal_add(struct fm_journal *journal, const struct fm_journal_entry *entry,
                    const uint16_t *words);

/* All that is in it is packed, and the packed file says so: begin anew. */
bool fm_journal_next(struct fm_journal *journal);

/* ---- reading what somebody left ---- */

/* The number of the journal in `fd`, and where its entries begin; 0: it is none. */
uint64_t fm_journal_open(int fd, uint64_t *at);

/* The next entry and its words (room for a chunk); false at the end, or where it makes no sense. */
bool fm_journal_read(int fd, uint64_t *at, struct fm_journal_entry *entry, uint16_t *words);

#endif
