/* The flight recorder; see keep.h. */
#include "commands/run/keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clean.h"
#include "base/clock.h"
#include "base/memory.h"

#define LOOK_NS 20000000u   /* between two looks */
#define REST_NS 1000000000u /* between two files without a window */

/* "out/app.fathom" → "out/app-kept-%n.fathom"; a template that has a number keeps its own. */
static char *template_of(const char *template, const char *path)
{
    if (template && strstr(template, "%n"))
        return fm_strdup(template);
    const char *base = strrchr(path, '/');
    const char *end = strstr(path, ".fathom");
    base = base ? base + 1 : path;
    if (!end || end[strlen(".fathom")])
        end = *base ? strchr(base + 1, '.') : NULL;
    struct fm_buffer name = FM_BUFFER_INIT;
    for (const char *c = path; *c; c++) {
        if (c == end)
            fm_buffer_add_text(&name, "-kept-%n");
        fm_buffer_add_text(&name, *c == '%' ? "%" : "");
        fm_buffer_add_char(&name, *c);
    }
    if (!end)
        fm_buffer_add_text(&name, "-kept-%n");
    return fm_buffer_detach(&name);
}

void fm_run_keep_init(struct fm_run_keep *keep, const struct fm_run_trace *options,
                      const char *template, const char *path, const struct fm_run_names *names,
                      uint64_t start_ns)
{
    *keep = (struct fm_run_keep){ .names = *names, .start_ns = start_ns };
    if (!options->keep_on.count)
        return;
    keep->options = options;
    keep->template = template_of(template, path);
}

void fm_run_keep_release(struct fm_run_keep *keep)
{
    for (size_t i = 0; i < keep->files.len; i++) {
        free(keep->files.data[i].path);
        free(keep->files.data[i].why);
    }
    fm_vec_release(&keep->files);
    free(keep->template);
    free(keep->why);
}

uint64_t fm_run_keep_due_ns(const struct fm_run_keep *keep)
{
    return keep->options ? keep->look_ns : UINT64_MAX;
}

static uint32_t most(const struct fm_run_keep *keep)
{
    return keep->options->keep_most ? keep->options->keep_most : FM_RUN_KEEP_MOST;
}

static void take(struct fm_run_keep *keep, struct fm_trace_watch *traces)
{
    struct fm_trigger trigger;
    uint64_t more;
    while (fm_trace_watch_triggered(traces, &trigger, &more)) {
        keep->pending += 1 + more;
        if (keep->why)
            continue;
        char text[FM_TRIGGER_TEXT + 64];
        struct fm_buffer why = FM_BUFFER_INIT;
        uint64_t after_ns = trigger.ns > keep->start_ns ? trigger.ns - keep->start_ns : 0;
        fm_trigger_describe(&trigger, text, sizeof text);
        fm_buffer_addf(&why, "%s in process %d, thread %u, %.3f s after the start", text,
                       (int)trigger.pid, trigger.tid, (double)after_ns / 1e9);
        keep->why = fm_buffer_detach(&why);
    }
    keep->pending += more;
}

bool fm_run_keep_look(struct fm_run_keep *keep, struct fm_trace_watch *traces)
{
    uint64_t now_ns = fm_clock_ns();
    keep->look_ns = now_ns + LOOK_NS;
    take(keep, traces);
    if (!keep->pending || now_ns < keep->next_ns)
        return false;
    if (keep->files.len < most(keep))
        return true;
    keep->left_out += keep->pending;
    keep->pending = 0;
    free(keep->why);
    keep->why = NULL;
    return false;
}

static char *write_file(struct fm_run_keep *keep, struct fm_profile *p, struct fm_error *err)
{
    struct fm_run_output output;
    fm_autobuffer text = FM_BUFFER_INIT;
    fm_buffer_addf(&text, "written while the program ran: %s", keep->why);
    fm_profile_note(p, FM_NONE, "kept", keep->pending, fm_buffer_text(&text));
    char *path = NULL;
    if (fm_run_output_open(&output, keep->template, false, &keep->names, p, err) == 0 &&
        fm_run_output_write(&output, p, err) == 0)
        path = fm_strdup(output.path);
    else
        fm_run_output_cancel(&output);
    fm_run_output_release(&output);
    return path;
}

void fm_run_keep_write(struct fm_run_keep *keep, struct fm_profile *p, struct fm_error *err)
{
    uint64_t window_ns = keep->options->window_ns;
    struct fm_run_kept kept = { p ? write_file(keep, p, err) : NULL, keep->why };
    if (!kept.path) {
        fm_autobuffer text = FM_BUFFER_INIT;
        fm_buffer_addf(&text, "%s; it could not be written: %s", keep->why, err->text);
        free(kept.why);
        kept.why = fm_buffer_detach(&text);
    }
    fm_vec_push(&keep->files, kept);
    keep->why = NULL;
    keep->pending = 0;
    keep->next_ns = fm_clock_ns() + (window_ns ? window_ns / 4 : REST_NS);
}

void fm_run_keep_report(struct fm_run_keep *keep, struct fm_trace_watch *traces, const char *path)
{
    if (!keep->options)
        return;
    take(keep, traces);
    for (size_t i = 0; i < keep->files.len; i++) {
        const struct fm_run_kept *kept = &keep->files.data[i];
        if (kept->path)
            fm_clean_say(stderr, "fathom run: kept %s: %s", kept->path, kept->why);
        else
            fm_clean_say(stderr, "fathom run: %s", kept->why);
    }
    if (keep->left_out)
        fm_clean_say(stderr,
                     "fathom run: it happened %llu more times, which were not kept: there are %u "
                     "files (--keep-most)",
                     (unsigned long long)keep->left_out, most(keep));
    if (keep->pending && keep->why)
        fm_clean_say(stderr, "fathom run: %s: in %s", keep->why, path);
    if (!keep->files.len && !keep->left_out && !keep->pending)
        fm_clean_say(stderr, "fathom run: nothing happened that --keep-on waits for");
}
