/*
 * Files and programs by name: what a path is, and where PATH finds a command.
 */
#ifndef FM_OS_PATH_H
#define FM_OS_PATH_H

#include <stdbool.h>

bool fm_path_is_file(const char *path);
bool fm_path_is_regular(const char *path); /* a file with content, not a device */
bool fm_path_is_folder(const char *path);
bool fm_path_is_executable(const char *path); /* a file this user may execute */

/* The last component, in place: "a/b.py" → "b.py". */
const char *fm_path_base(const char *path);

bool fm_path_ends_with(const char *path, const char *suffix);

/* Is it an interpreter by its name: python, python3, a/python3.13t? */
bool fm_path_names_python(const char *path);

/* `folder` and `name` joined by one slash; malloc'ed. */
char *fm_path_join(const char *folder, const char *name);

/* Where PATH finds the program `name`, which has no slash: malloc'ed. NULL with errno ENOENT, or
 * EACCES if the only files of that name are not executable. */
char *fm_path_find_program(const char *name);

#endif
