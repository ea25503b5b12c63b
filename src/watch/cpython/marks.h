/*
 * The marks a CPython leaves in the memory of its file, for builds whose symbols are gone: the text
 * of sys.version, the cookie of the debug offsets (3.13+), and the list of interpreters.
 *
 * Writable memory of an image is read in pieces and looked at word by word. A hit is only a
 * candidate: fm_runtime_find() confirms it by walking to a thread state and back.
 */
#ifndef FM_CPYTHON_MARKS_H
#define FM_CPYTHON_MARKS_H

#include "watch/cpython/layout.h"
#include "watch/os/remote/image.h"

/* The version that the text of Py_GetVersion() names, as PY_VERSION_HEX without its last byte; 0 if
 * there is none: no Python, or one that has not started. */
uint32_t fm_marks_version(const struct fm_image *image, const struct fm_remote *remote);

/* Is this the start of the text of sys.version, as "3.9.18 (main, …) \n[GCC 12.2.0]"? */
uint32_t fm_marks_parse_version(const char *text, size_t len);

/* The version in the debug offsets at `runtime`, 0 if there are none. */
uint32_t fm_marks_cookie(const struct fm_remote *remote, fm_addr runtime);

/* _PyRuntime by its cookie, at or behind `from` (0: from the start); 0 if there is none. */
fm_addr fm_marks_find_cookie(const struct fm_image *image, const struct fm_remote *remote,
                             fm_addr from);

/* _PyRuntime by its list of interpreters, for 3.9 to 3.12; 0 if there is none. */
fm_addr fm_marks_find_interpreters(const struct fm_image *image, const struct fm_remote *remote,
                                   const struct fm_layout *layout);

/* Do interpreter and thread state at the head of this list of interpreters point at each other?
 * 1 yes; 0 the list is empty, or there is no thread yet; -1 no. */
int fm_marks_confirm(const struct fm_remote *remote, fm_addr runtime,
                     const struct fm_layout *layout);

#endif
