/*
 * The notes of a core file: its threads with their registers, the files that were mapped, the
 * command. A note that is too short or makes no sense is passed over.
 */
#ifndef FM_OS_COREFILE_NOTES_H
#define FM_OS_COREFILE_NOTES_H

#include "base/vec.h"
#include "watch/os/remote/corefile.h"

struct fm_core_file {
    fm_addr start, end;
    uint64_t offset;
    char *path; /* owned */
};

struct fm_core_notes {
    FM_VEC(struct fm_core_thread) threads;
    FM_VEC(struct fm_core_file) files; /* ascending */
    char command[81];
    pid_t pid;
    fm_addr entry; /* entry point of the program; 0 if unknown */
};

/* Add what a note segment says. */
void fm_core_notes_parse(struct fm_core_notes *notes, const void *bytes, size_t len);
void fm_core_notes_release(struct fm_core_notes *notes);

#endif
