/*
 * Writes a recording with a small trace whose every span is known, for tests of the page:
 *
 *     tool_timeline OUTPUT
 *
 * A tick is a nanosecond. On the first thread f1 runs for 10 ms and makes nine requests (f2), the k-th at
 * k ms + 100 µs for 500 µs, but the fifth takes 900 µs; each calls f3 after 10 µs for 100 µs, which calls f4
 * after 10 µs for 50 µs. In the third request f3 is left by an exception (n1). The counter n2 is k at each
 * request; collection of generation 2 from 9.2 to 9.3 ms, an instant (n3) at 9.5 ms. On the second thread f5
 * runs from 0.5 to 9.5 ms; 77 events are lost between 4 and 5 ms; f6 calls itself 300 deep from 6 ms on, a
 * microsecond each, and returns as quickly. f7 has a hostile name and is called once at 8 ms for 1 ms.
 */
#include <fcntl.h>

#include "record/model/file/file.h"
#include "trace_profile.h"
#include "trace_words.h"

#define START 1000000000u
#define US    1000u
#define MS    1000000u
#define DEEP  300u

static struct trace_words words[2];

static void escape(struct trace_words *w, uint64_t at, unsigned kind, const uint32_t *numbers,
                   unsigned count)
{
    words_escape(w, START + at, kind, numbers, count);
}

static void call(struct trace_words *w, uint64_t at, uint32_t func)
{
    words_call(w, START + at, func);
}

static void leave(struct trace_words *w, uint64_t at)
{
    words_return(w, START + at);
}

static void request(struct trace_words *w, uint32_t k)
{
    double value = k;
    uint64_t bits, at = k * MS + 100 * US;
    memcpy(&bits, &value, sizeof bits);
    call(w, at, 2);
    escape(w, at, FM_TRACE_COUNTER, (uint32_t[]){ 2, (uint32_t)bits, (uint32_t)(bits >> 32) }, 3);
    call(w, at + 10 * US, 3);
    call(w, at + 20 * US, 4);
    leave(w, at + 70 * US);
    if (k == 3) {
        escape(w, at + 110 * US, FM_TRACE_RAISE, (uint32_t[]){ 1 }, 1);
        escape(w, at + 110 * US, FM_TRACE_UNWIND, NULL, 0);
    } else {
        leave(w, at + 110 * US);
    }
    leave(w, at + (k == 5 ? 900 * US : 500 * US));
}

static void first_thread(struct trace_words *w)
{
    words_begin(w, START);
    call(w, 0, 1);
    for (uint32_t k = 0; k < 9; k++)
        request(w, k);
    escape(w, 9200 * US, FM_TRACE_GC_BEGIN, (uint32_t[]){ 2 }, 1);
    escape(w, 9300 * US, FM_TRACE_GC_END, (uint32_t[]){ 41, 0 }, 2);
    escape(w, 9500 * US, FM_TRACE_INSTANT, (uint32_t[]){ 3 }, 1);
    leave(w, 10 * MS);
    words_hand_over(w);
}

static void second_thread(struct trace_words *w)
{
    uint64_t from = START + 4 * MS, to = START + 5 * MS;
    words_begin(w, START + 500 * US);
    call(w, 500 * US, 5);
    escape(w, 5 * MS, FM_TRACE_LOST,
           (uint32_t[]){ 77, 0, (uint32_t)from, (uint32_t)(from >> 32), (uint32_t)to,
                         (uint32_t)(to >> 32) },
           6);
    escape(w, 5 * MS, FM_TRACE_OPEN, (uint32_t[]){ 5, (uint32_t)(START + 500 * US), 0 }, 3);
    for (uint64_t i = 0; i < DEEP; i++)
        call(w, 6 * MS + i * US, 6);
    for (uint64_t i = 0; i < DEEP; i++)
        leave(w, 6 * MS + (DEEP + i) * US);
    call(w, 8 * MS, 7);
    leave(w, 9 * MS);
    leave(w, 9500 * US);
    words_hand_over(w);
}

/* Text that must stay text. */
static void name_the_hostile(struct fm_profile *p)
{
    static const char name[] = "<img src=x onerror=alert(1)>\xe2\x80\xae\n\"quoted\"";
    struct fm_function *f = &p->functions.data[p->traces.list.data[0].functions.data[7]];
    f->name = f->qualname = fm_profile_string(p, name);
}

int main(int argc, char **argv)
{
    struct fm_error err = FM_ERROR_INIT;
    struct trace_packed packed = trace_packed_new();
    struct fm_trace_pack *pack = fm_trace_pack_new(0, trace_sink, &packed);
    struct fm_profile *p = fm_profile_new();
    if (argc != 2)
        return 2;
    fm_profile_fact(p, "command", "nine requests");
    fm_trace_pack_clock(pack, START, START);
    fm_trace_pack_clock(pack, START + 10 * MS, START + 10 * MS);
    for (uint32_t i = 0; i < 2; i++)
        words[i] = (struct trace_words){ .pack = pack, .thread = i + 1, .tid = 1000 + i };
    first_thread(&words[0]);
    second_thread(&words[1]);
    fm_trace_pack_end(pack, START + 10 * MS);
    trace_add(p, pack, &packed, 1000, 7, 3);
    p->processes.data[0].c_calls = true; /* there are none: whoever is silent is in Python code */
    name_the_hostile(p);
    fm_trace_pack_free(pack);
    int fd = open(argv[1], O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
    int status = fd < 0 ? 1 : fm_file_save(p, fd, &err);
    if (status)
        fprintf(stderr, "%s\n", err.text);
    fm_profile_free(p);
    return status ? 1 : 0;
}
