/* Spans of annotations; see spans.h. */
#include "target/notify/spans.h"

#include <fathom.h>
#include <pthread.h>
#include <stdbool.h>

#define MOST_OPEN 4096 /* at once; further ones are not told */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t number; /* 0: free */
    bool own;        /* it is the program's */
    fathom_span span;
} open_spans[MOST_OPEN];
static uint64_t next_number = 1;

static size_t find(uint64_t number, bool own)
{
    size_t i = 0;
    while (i < MOST_OPEN &&
           (open_spans[i].number != number || (number && open_spans[i].own != own)))
        i++;
    return i;
}

static uint64_t begin(uint64_t number, bool own, const char *name)
{
    if (!fathom_hooks_1.recording)
        return 0;
    pthread_mutex_lock(&lock);
    size_t i = find(0, false);
    if (i < MOST_OPEN) {
        open_spans[i].number = own ? number : next_number++;
        open_spans[i].own = own;
        open_spans[i].span = fathom_span_begin(name);
        number = open_spans[i].number;
    }
    pthread_mutex_unlock(&lock);
    return i < MOST_OPEN ? number : 0;
}

static void end(uint64_t number, bool own)
{
    if (!number || !fathom_hooks_1.recording)
        return;
    pthread_mutex_lock(&lock);
    size_t i = find(number, own);
    if (i < MOST_OPEN) {
        open_spans[i].number = 0;
        fathom_span_end(open_spans[i].span);
    }
    pthread_mutex_unlock(&lock);
}

uint64_t fm_notify_span_begin(const char *name)
{
    return begin(0, false, name);
}

void fm_notify_span_end(uint64_t number)
{
    end(number, false);
}

void fm_notify_span_begin_as(uint64_t number, const char *name)
{
    if (number)
        begin(number, true, name);
}

void fm_notify_span_end_as(uint64_t number)
{
    end(number, true);
}

const char *fm_notify_narrow(const wchar_t *text, char out[FM_NOTIFY_TEXT])
{
    size_t at = 0;
    for (; text && *text && at + 5 < FM_NOTIFY_TEXT; text++) {
        uint32_t c = (uint32_t)*text;
        if (c < 0x80) {
            out[at++] = (char)c;
        } else if (c < 0x800) {
            out[at++] = (char)(0xc0 | c >> 6);
            out[at++] = (char)(0x80 | (c & 0x3f));
        } else if (c < 0x10000) {
            out[at++] = (char)(0xe0 | c >> 12);
            out[at++] = (char)(0x80 | (c >> 6 & 0x3f));
            out[at++] = (char)(0x80 | (c & 0x3f));
        } else {
            out[at++] = (char)(0xf0 | (c >> 18 & 7));
            out[at++] = (char)(0x80 | (c >> 12 & 0x3f));
            out[at++] = (char)(0x80 | (c >> 6 & 0x3f));
            out[at++] = (char)(0x80 | (c & 0x3f));
        }
    }
    out[at] = '\0';
    return out;
}
