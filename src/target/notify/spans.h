/*
 * What annotations of others (NVTX, ITT) become: regions, spans and instants of include/fathom.h.
 *
 * libfathom_notify.so is what their libraries load when NVTX_INJECTION64_PATH or INTEL_LIBITTNOTIFY64 names it. It knows
 * neither Python nor the agent: where nothing is recorded, each annotation tests a byte.
 *
 * Numbers that a program hands in (of spans that overlap) are looked up, never followed: a wrong one does
 * nothing. Threads: any.
 */
#ifndef FM_NOTIFY_SPANS_H
#define FM_NOTIFY_SPANS_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#define FM_NOTIFY_EXPORT __attribute__((visibility("default")))
#define FM_NOTIFY_TEXT   1024 /* bytes of a name that is made here */

/* Begin a span that may end in another thread; its number, 0 if nothing is recorded. */
uint64_t fm_notify_span_begin(const char *name);
void fm_notify_span_end(uint64_t number);

/* … by a number of the program's own. */
void fm_notify_span_begin_as(uint64_t number, const char *name);
void fm_notify_span_end_as(uint64_t number);

/* Wide characters as UTF-8, cut to fit. */
const char *fm_notify_narrow(const wchar_t *text, char out[FM_NOTIFY_TEXT]);

#endif
