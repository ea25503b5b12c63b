/*
 * `--fail-above SIZE`: a gate for CI. A run whose processes stayed below ends as the program did; one
 * of which a process allocated more at once ends with a status of its own, after a sentence and the
 * contexts that held most at that peak.
 */
#ifndef FM_COMMANDS_RUN_GATE_H
#define FM_COMMANDS_RUN_GATE_H

#include "base/error.h"
#include "record/model/profile.h"

/* "200M", "1.5 GiB", "4096": bytes, in units of 1024. */
int fm_run_gate_parse(int64_t *ret_bytes, const char *text, struct fm_error *err);

/* The contexts that held most at the peak of a process, on stderr; FM_NONE: of all together. */
void fm_run_gate_name_guilty(const struct fm_profile *p, uint32_t process);

/* What all of those held, of which the most is named. */
int64_t fm_run_gate_sum(const struct fm_profile *p, uint32_t process);

/* 0, or the exit status of a run that needed more than `limit`. */
int fm_run_gate(const struct fm_profile *p, int64_t limit);

#endif
