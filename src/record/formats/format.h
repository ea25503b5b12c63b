/*
 * Foreign formats: one file per format in this folder, one line in the list in formats.c.
 *
 * fm_profile_open() is how every verb opens its inputs: it recognises a .fathom file or any foreign
 * format by its content, never by its name.
 */
#ifndef FM_FORMATS_FORMAT_H
#define FM_FORMATS_FORMAT_H

#include <stdio.h>

#include "base/buffer.h"
#include "base/error.h"
#include "record/model/profile.h"

/* Which part of a timeline is written. */
struct fm_save_choice {
    uint64_t from_ns, to_ns;           /* since it began; to 0: until its end */
    uint64_t min_ns;                   /* shorter spans are left out */
    uint32_t max_depth;                /* deeper ones, too; 0: none */
    void (*say_spans)(uint64_t spans); /* NULL, or told before how many there will be */
};

struct fm_format {
    const char *name;            /* "pstats" */
    const char *title;           /* "cProfile's pstats" */
    const char *const *suffixes; /* NULL-terminated: ".prof", ".pstats": choose the format of -o */
    const char *prefix;          /* NULL, or how the file's name begins: "callgrind.out." */
    /* Could these be the first bytes of a file in this format? NULL: cannot be read. */
    bool (*recognise)(const void *bytes, size_t len);
    struct fm_profile *(*load)(const void *bytes, size_t len, const char *name,
                               struct fm_error *err);
    /* NULL, or the same of a file that need not be in memory as a whole; it stands at its beginning. */
    struct fm_profile *(*load_fd)(int fd, uint64_t len, const char *name, struct fm_error *err);
    /* Append the profile in this format to `out`. NULL: cannot be written. */
    int (*save)(const struct fm_profile *p, struct fm_buffer *out, struct fm_error *err);
    /* … its timeline, to a file, however long it is. NULL: cannot be. */
    int (*save_timeline)(const struct fm_profile *p, const struct fm_save_choice *choice, int fd,
                         struct fm_error *err);
};

extern const struct fm_format fm_format_pstats;
extern const struct fm_format fm_format_lprof;
extern const struct fm_format fm_format_callgrind;
extern const struct fm_format fm_format_collapsed;
extern const struct fm_format fm_format_speedscope;
extern const struct fm_format fm_format_firefox;
extern const struct fm_format fm_format_chrome;
extern const struct fm_format fm_format_perfetto;
extern const struct fm_format fm_format_pprof;
extern const struct fm_format fm_format_mprofile;
extern const struct fm_format fm_format_memray;
extern const struct fm_format fm_format_memray_bin;

/* The format of that name, or the one whose suffix ends the path or whose prefix begins the name of
 * the file; NULL if there is none. ".fathom" itself is not a foreign format. */
const struct fm_format *fm_format_named(const char *name);
const struct fm_format *fm_format_of_path(const char *path);
const struct fm_format *const *fm_formats_all(void); /* NULL-terminated */

/* Open a recording of any kind. */
struct fm_profile *fm_profile_open(const char *path, struct fm_error *err);

/* The same, for those who do not need all of it (enum fm_file_part). */
struct fm_profile *fm_profile_open_parts(const char *path, unsigned parts, struct fm_error *err);

/* Write `p` to `path`, which must not exist unless `overwrite`. NULL format: .fathom. The file
 * appears whole or not at all (written beside, then renamed). */
int fm_profile_write(const struct fm_profile *p, const char *path, const struct fm_format *format,
                     bool overwrite, struct fm_error *err);

/* The same of a part of its timeline, in a format of timelines. */
int fm_profile_write_timeline(const struct fm_profile *p, const char *path,
                              const struct fm_format *format, const struct fm_save_choice *choice,
                              bool overwrite, struct fm_error *err);

#endif
