/*
 * Spots and waits as reports show them: of the functions shown, added up over processes, the
 * longest first or as the first sort key says (samples, name, file, line; anything else is time).
 */
#ifndef FM_REPORT_PLACES_H
#define FM_REPORT_PLACES_H

#include "show/report/report.h"

struct fm_place {
    uint32_t row; /* of the table of functions */
    /* Of these the fields before the numbers; `process` is the first one that was there. */
    struct fm_spot spot;
    struct fm_wait wait;
    int64_t samples, ns;
};

struct fm_places {
    FM_VEC(struct fm_place) all;
    size_t of;      /* so many there were before cutting down */
    int64_t all_ns; /* what shares are of: the time of all functions in scope */
    int64_t all_samples;
};

void fm_places_init(struct fm_places *places, const struct fm_report *r, enum fm_part part);
void fm_places_release(struct fm_places *places);

/* The text the function stands in, or NULL. `texts` is made when first needed. */
const struct fm_text *fm_place_text(const struct fm_report *r, struct fm_texts **texts,
                                    const struct fm_place *place);

#endif
