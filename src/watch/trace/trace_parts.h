/* What trace_log.c, trace_recover.c and trace_state.c share. Nobody else includes this. */
#ifndef FM_WATCH_TRACE_PARTS_H
#define FM_WATCH_TRACE_PARTS_H

#include <sys/types.h>

#include "base/map.h"
#include "record/capture/writer.h"
#include "watch/trace/journal.h"
#include "watch/trace/trace_file.h"
#include "watch/trace/trace_log.h"
#include "watch/trace/window.h"

struct fm_trace_log {
    char *folder;
    pid_t pid;
    unsigned number;
    bool reads;   /* the folder is another's, and stays as it is */
    bool goes_on; /* chunks before were taken by somebody else */
    bool ended;
    int failed;              /* errno */
    int packed;              /* −1: not made, or closed: runs have thousands of processes */
    char *path;              /* of it; NULL: it has no name */
    struct fm_writer writer; /* of `packed` */
    struct fm_journal journal;
    struct fm_trace_file file;
    struct fm_trace_pack *pack; /* NULL until the trace is there */
    struct fm_map next;         /* thread → sequence of its next chunk */
    struct fm_trace_window window;
    struct fm_window_block state; /* that was told last; `end` is 0: none */
    uint64_t told_ns;             /* when */
    uint64_t cut_ns;              /* of one that reads: it tells the last so much alone; 0: all */
    struct fm_trigger_scan *triggers; /* NULL: nobody waits for anything */
    uint64_t peek_ns;                 /* when chunks that are being filled are looked at next */
    uint64_t missing, lost, waited_ticks;
    uint16_t *words; /* of a chunk, while there may be one */
};

/* "FOLDER/BELOWPID.NSUFFIX"; malloc'ed. */
char *fm_trace_path(const char *folder, const char *below, pid_t pid, unsigned number,
                    const char *suffix);

void fm_trace_log_sink(void *context, uint16_t type, const void *payload, size_t bytes);

/* Pairs of the clocks, as the process's store and this moment have them. */
void fm_trace_log_tell_clock(struct fm_trace_log *log);

/* The chunk whose words are in `log->words`, to the packer. */
void fm_trace_log_give(struct fm_trace_log *log, const struct fm_journal_entry *entry);

/* All that is left in the trace, and its end. */
void fm_trace_log_rest(struct fm_trace_log *log, uint64_t end_ticks);

#endif
