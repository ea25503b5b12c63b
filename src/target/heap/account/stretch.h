/*
 * The peak of a stretch of the program, such as one test of many, to the allocation and with the share of every
 * context, by the same means as the peak of the process (account.h): when a stretch begins, what all
 * accounts had at the peak so far is put aside, and the peak begins anew; when it ends, the higher of both
 * is the peak of the process again. So a stretch costs two walks over the accounts, and events nothing.
 *
 * What other threads do without the GIL while one begins or ends may be missing in the shares, not in the peak.
 * A process that is killed in a stretch has that one's peak; the header tells what it was before.
 */
#ifndef FM_HEAP_STRETCH_H
#define FM_HEAP_STRETCH_H

/* In a child: what was put aside is the parent's. */
void fm_stretch_forget(void);

#endif
