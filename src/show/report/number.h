/*
 * Numbers for people: times with a unit, counts in groups of three, shares in percent, and display
 * widths of UTF-8 text. Every function writes into a buffer of the caller's and returns it.
 */
#ifndef FM_REPORT_NUMBER_H
#define FM_REPORT_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define FM_NUMBER_BYTES 48

/* "1.234 s", "12.3 ms", "456 µs", "78 ns", "2 h 05 min"; "0" for nothing. */
char *fm_number_time(char *out, int64_t ns);

/* "3.40 MiB", "512 B"; "0" for nothing. */
char *fm_number_bytes(char *out, int64_t bytes);

/* Two of them to be compared: with as many more digits as it takes to tell them apart, "100.2 MiB" and
 * "100.0 MiB"; in the end "104,857,601 B". */
void fm_number_bytes_apart(char *out, int64_t bytes, char *out_other, int64_t other);

/* "12,345". */
char *fm_number_count(char *out, int64_t count);

/* Calls the way pstats shows them: "12,345", or "12,345/17" when only 17 were not recursive. */
char *fm_number_calls(char *out, int64_t calls, int64_t primitive);

/* part/whole as "12.3", "100", "<0.1"; "" if whole is 0 or part is. */
char *fm_number_percent(char *out, double part, double whole);

/* A double in the fewest digits that read back as the same number, as Python's repr writes it. */
char *fm_number_repr(char *out, double value);

/* Columns that `len` bytes of UTF-8 take on a terminal. */
size_t fm_text_width(const char *text, size_t len);

#endif
