/*
 * The file in which the process keeps its accounts (capture/live_heap.h): its arrays grow in place,
 * so that numbers stay indices, and what somebody has a pointer to stays there.
 *
 * Each array has a range of addresses of its own from the start; a piece of the file is mapped over
 * the next part of it when that is needed. If the range is too short, all pieces are mapped a second
 * time in a longer one: the same memory at two addresses. The space is allocated first, so that a full
 * file system is refused here and never a SIGBUS in the program. A second file, on disk, takes what would
 * leave too little of the first one's file system to the program, or all but the header where memory is
 * scarce.
 *
 * Threads: growing takes a lock. Failure: a record that cannot be had is 0.
 */
#ifndef FM_HEAP_STORE_H
#define FM_HEAP_STORE_H

#include "target/heap/heap.h"

/* Open PID.N.heap in fm_heap.folder. 0, or -1. */
int fm_heap_store_open(void);

/* In a child: a new file in the place of the parent's. Numbers of accounts go on after the parent's;
 * all else begins anew. */
int fm_heap_store_reopen(void);

/* From now on a reader may believe what it finds. */
void fm_heap_store_ready(void);

/* Give all of its memory back; the files stay. While nothing is recorded. */
void fm_heap_store_close(void);

const char *fm_heap_store_path(void); /* of the first file */

uint32_t fm_heap_store_node(uint32_t parent, uint32_t code, uint32_t offset, uint32_t thread);
uint32_t fm_heap_store_account(uint32_t node, uint32_t thread);
uint32_t fm_heap_store_number(const struct fm_heap_account *account);
struct fm_heap_thread *fm_heap_store_thread(uint32_t *ret_number);

void fm_heap_store_range(uint32_t number, const struct fm_heap_range *range);

/* Room for so many bytes of definitions, to be filled and then committed under the same lock that the
 * caller holds (codes.c); NULL if there is none. */
unsigned char *fm_heap_store_define(size_t bytes);
void fm_heap_store_defined(size_t bytes);

/* Around fork: nobody grows anything meanwhile. */
void fm_heap_store_hold(void);
void fm_heap_store_release(void);

#endif
