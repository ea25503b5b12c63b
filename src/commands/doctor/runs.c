/* Folders of runs, for `fathom doctor`; see doctor.h and os/run/leftovers.h. */
#include <stdlib.h>

#include "commands/doctor/doctor.h"
#include "commands/run/samples.h"
#include "commands/verb.h"
#include "record/formats/format.h"
#include "show/report/number.h"
#include "watch/os/path.h"

char *fm_doctor_run_command(const struct fm_leftover *run)
{
    fm_autofree char *path = fm_path_join(run->path, FM_RUN_FACTS_FILE);
    struct fm_profile *p = fm_path_is_file(path) ? fm_profile_open(path, NULL) : NULL;
    const char *command = p ? fm_profile_fact_get(p, "command") : NULL;
    char *copy = fm_strdup(command ? command : "");
    fm_profile_free(p);
    return copy;
}

struct fm_doctor_left fm_doctor_left(const struct fm_leftovers *runs)
{
    struct fm_doctor_left left = { 0 };
    for (size_t i = 0; i < runs->list.len; i++) {
        const struct fm_leftover *run = &runs->list.data[i];
        left.running += run->running;
        left.folders += !run->running;
        left.bytes += run->running ? 0 : run->bytes;
    }
    return left;
}

int fm_doctor_clear(FILE *out)
{
    struct fm_leftovers runs;
    struct fm_error err = FM_ERROR_INIT;
    char bytes[FM_NUMBER_BYTES];
    size_t removed = 0;
    uint64_t removed_bytes = 0;
    fm_leftovers_find(&runs);
    struct fm_doctor_left left = fm_doctor_left(&runs);
    for (size_t i = 0; i < runs.list.len; i++) {
        const struct fm_leftover *run = &runs.list.data[i];
        if (run->running)
            continue;
        if (fm_leftover_remove(run)) {
            removed++;
            removed_bytes += run->bytes;
        } else if (!err.status) {
            fm_error_set(&err, FM_CANNOT_WRITE, "the folder %s cannot be removed", run->path);
        }
    }
    fprintf(out, "Removed %zu folder%s of runs that were cut off, %s bytes", removed,
            removed == 1 ? "" : "s", fm_number_count(bytes, (int64_t)removed_bytes));
    if (left.running)
        fprintf(out, "; %zu of runs that go on %s left alone", left.running,
                left.running == 1 ? "was" : "were");
    fputs(".\n", out);
    fm_leftovers_release(&runs);
    return err.status ? fm_verb_fail("doctor", &err) : 0;
}
