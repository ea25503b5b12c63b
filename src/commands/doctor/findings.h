/* What follows from the facts that `fathom doctor` gathered: its findings. */
#ifndef FM_COMMANDS_DOCTOR_FINDINGS_H
#define FM_COMMANDS_DOCTOR_FINDINGS_H

#include "commands/doctor/doctor.h"

/* About the machine. */
void fm_doctor_find(struct fm_doctor *d);

/* About process d->pid; `why` it could not be read, if so. */
void fm_doctor_find_process(struct fm_doctor *d, const struct fm_error *why);

bool fm_doctor_has_agent(const struct fm_doctor *d, uint32_t version_hex);

#endif
