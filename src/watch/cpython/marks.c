/* The marks a CPython leaves in memory; see marks.h. */
#include "watch/cpython/marks.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"

#define PIECE_BYTES        (1u << 20)
#define OVERLAP_BYTES      512u /* longer than any mark */
#define SEARCH_LIMIT_BYTES (256u << 20)
#define PAGE_BYTES         4096u
#define INTERPRETER_LIMIT  256

static const char cookie_text[8] = "xdebugpy";

/* Looks at bytes that lie at `at`; true ends the search. A mark cut off at the end comes again, in
 * full, with the next piece. */
typedef bool (*look_fn)(void *data, fm_addr at, const char *bytes, size_t len);

static bool search_segment(const struct fm_image_segment *segment, const struct fm_remote *remote,
                           fm_addr from, char *piece, look_fn look, void *data)
{
    fm_addr at = (segment->start > from ? segment->start : from) & ~(fm_addr)7;
    fm_addr end = segment->end;
    if (at < end && end - at > SEARCH_LIMIT_BYTES)
        end = at + SEARCH_LIMIT_BYTES;
    while (at < end) {
        size_t want = end - at < PIECE_BYTES ? end - at : PIECE_BYTES;
        if (fm_remote_read(remote, at, piece, want) == 0) {
            if (look(data, at, piece, want))
                return true;
            if (at + want >= end)
                return false;
            at += want - OVERLAP_BYTES;
            continue;
        }
        /* A hole: page by page, without marks that span two pages. */
        size_t page = PAGE_BYTES - at % PAGE_BYTES;
        if (page > want)
            page = want;
        if (fm_remote_read(remote, at, piece, page) == 0 && look(data, at, piece, page))
            return true;
        at += page;
    }
    return false;
}

static bool search(const struct fm_image *image, const struct fm_remote *remote, fm_addr from,
                   look_fn look, void *data)
{
    fm_autofree char *piece = fm_malloc(PIECE_BYTES);
    for (int i = 0; i < image->writable_count; i++)
        if (search_segment(&image->writable[i], remote, from, piece, look, data))
            return true;
    return false;
}

/* Digits of a small number; moves on. */
static bool small_number(const char **text, const char *end, unsigned *value)
{
    const char *from = *text;
    *value = 0;
    while (*text < end && isdigit((unsigned char)**text) && *text - from < 3)
        *value = *value * 10 + (*(*text)++ - '0');
    return *text > from;
}

uint32_t fm_marks_parse_version(const char *text, size_t len)
{
    const char *at = text, *end = text + len;
    unsigned major, minor, micro;
    if (!small_number(&at, end, &major) || major != 3 || at >= end || *at++ != '.' ||
        !small_number(&at, end, &minor) || at >= end || *at++ != '.' ||
        !small_number(&at, end, &micro) || minor > 255 || micro > 255)
        return 0;
    /* "3.15.0a3+ experimental free-threading build (main, …) [Clang 17]" at its longest */
    const char *open = memchr(at, '(', end - at < 80 ? end - at : 80);
    const char *close = open ? memchr(open, ')', end - open < 120 ? end - open : 120) : NULL;
    if (!open || open == at || open[-1] != ' ' || !close || end - close < 4)
        return 0;
    if (memchr(text, '\0', close - text) ||
        (memcmp(close, ") \n[", 4) != 0 && memcmp(close, ") [", 3) != 0))
        return 0;
    return major << 24 | minor << 16 | micro << 8;
}

static bool look_for_version(void *data, fm_addr at, const char *bytes, size_t len)
{
    (void)at;
    for (const char *p = bytes; (p = memchr(p, '3', len - (p - bytes))); p++) {
        size_t left = len - (p - bytes);
        if (left < 8 || p[1] != '.')
            continue;
        uint32_t version = fm_marks_parse_version(p, left < 256 ? left : 256);
        if (version) {
            *(uint32_t *)data = version;
            return true;
        }
    }
    return false;
}

uint32_t fm_marks_version(const struct fm_image *image, const struct fm_remote *remote)
{
    uint32_t version = 0;
    search(image, remote, 0, look_for_version, &version);
    return version;
}

/* Cookie and version, one behind the other; the version is a PY_VERSION_HEX. */
static uint32_t cookie_version(const char *bytes)
{
    uint64_t version;
    memcpy(&version, bytes + sizeof cookie_text, sizeof version);
    bool sane = memcmp(bytes, cookie_text, sizeof cookie_text) == 0 && version >> 24 == 3;
    return sane ? version : 0;
}

uint32_t fm_marks_cookie(const struct fm_remote *remote, fm_addr runtime)
{
    char bytes[16];
    return fm_remote_read(remote, runtime, bytes, sizeof bytes) ? 0 : cookie_version(bytes);
}

static bool look_for_cookie(void *data, fm_addr at, const char *bytes, size_t len)
{
    for (size_t i = 0; i + 16 <= len; i += 8) {
        if (cookie_version(bytes + i)) {
            *(fm_addr *)data = at + i;
            return true;
        }
    }
    return false;
}

fm_addr fm_marks_find_cookie(const struct fm_image *image, const struct fm_remote *remote,
                             fm_addr from)
{
    fm_addr found = 0;
    search(image, remote, from, look_for_cookie, &found);
    return found;
}

/* 1: interpreter and thread state agree; 0: there is no thread; -1: they do not. */
static int confirm_interpreter(const struct fm_remote *remote, fm_addr interp,
                               const struct fm_layout *layout)
{
    uint64_t thread, back;
    if (fm_remote_read(remote, interp + layout->interp_threads_head, &thread, sizeof thread))
        return -1;
    if (!thread)
        return 0;
    if (thread % sizeof thread ||
        fm_remote_read(remote, thread + layout->thread_interp, &back, sizeof back))
        return -1;
    return back == interp ? 1 : -1;
}

int fm_marks_confirm(const struct fm_remote *remote, fm_addr runtime,
                     const struct fm_layout *layout)
{
    uint64_t interp;
    if (fm_remote_read(remote, runtime + layout->runtime_interpreters_head, &interp, sizeof interp))
        return -1;
    int seen = 0;
    for (int i = 0; interp && i < INTERPRETER_LIMIT; i++) {
        int agrees = interp % sizeof interp ? -1 : confirm_interpreter(remote, interp, layout);
        if (agrees)
            return agrees; /* a new sub-interpreter may still be without a thread: look further */
        seen = 1;
        if (fm_remote_read(remote, interp + layout->interp_next, &interp, sizeof interp))
            return -1;
    }
    return interp && seen ? -1 : 0;
}

struct interpreters_search {
    const struct fm_remote *remote;
    const struct fm_layout *layout;
    fm_addr found;
};

/*
 * In 3.9 to 3.12 the runtime holds, one behind the other, a lock, the newest interpreter, the main
 * interpreter and the id of the next one (struct pyinterpreters). Interpreters are aligned as malloc
 * aligns; ids count from 0. The main interpreter has the id 0 and refers to a thread that refers to
 * it; so does the newest one, unless it is only being made.
 */
static bool look_for_interpreters(void *data, fm_addr at, const char *bytes, size_t len)
{
    struct interpreters_search *s = data;
    for (size_t i = 0; i + 24 <= len; i += 8) {
        uint64_t head, main_interp, next_id;
        memcpy(&head, bytes + i, 8);
        memcpy(&main_interp, bytes + i + 8, 8);
        memcpy(&next_id, bytes + i + 16, 8);
        if (head < PAGE_BYTES || main_interp < PAGE_BYTES || head % 8 || main_interp % 8 ||
            next_id < 1 || next_id > 1u << 20 || (next_id == 1 && head != main_interp))
            continue;
        int64_t id;
        if (fm_remote_read(s->remote, main_interp + s->layout->interp_id, &id, sizeof id) || id ||
            confirm_interpreter(s->remote, main_interp, s->layout) != 1)
            continue;
        fm_addr runtime = at + i - s->layout->runtime_interpreters_head;
        if (fm_marks_confirm(s->remote, runtime, s->layout) == 1) {
            s->found = runtime;
            return true;
        }
    }
    return false;
}

fm_addr fm_marks_find_interpreters(const struct fm_image *image, const struct fm_remote *remote,
                                   const struct fm_layout *layout)
{
    struct interpreters_search s = { remote, layout, 0 };
    search(image, remote, 0, look_for_interpreters, &s);
    return s.found;
}
