/*
 * Which functions get their lines recorded.
 *
 * A choice is a list of patterns separated by commas:
 *   mine          code outside the standard library and the folders of installed packages
 *   all           every Python function
 *   anything else a glob against a function's name, qualified name, file (path or base name),
 * module
 *                 ("pkg.mod") or module and qualified name ("pkg.mod.Class.method"). What is inside
 * a match, nested functions and methods, matches too. Functions marked by a decorator or by
 * LineProfiler are chosen whatever the patterns say.
 *
 * Threads: called with the GIL; keeps nothing.
 */
#ifndef FM_AGENT_CHOOSE_H
#define FM_AGENT_CHOOSE_H

#include "target/agent/python.h"

#include <stdbool.h>

enum fm_chosen { FM_CHOSEN_NOT = 0, FM_CHOSEN = 1, FM_CHOSEN_BY_NAME = 2 };

enum fm_chosen fm_choose(const char *patterns, PyCodeObject *code);

/* Is this the user's own code, as "mine" means it? */
bool fm_choose_is_mine(PyCodeObject *code);

#endif
