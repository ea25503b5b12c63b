/*
 * Events and stages of petsc4py (PETSc.Log.Event, PETSc.Log.Stage) as regions of their names.
 *
 * Their types are C, and `with` calls their methods without an event that anybody could hear. So the functions
 * behind the methods begin/end and push/pop (`__enter__` and `__exit__` call these) are replaced where the
 * methods keep them, in their PyMethodDef: methods, types, names and signatures stay the objects that they were.
 *
 * Threads: the GIL.
 */
#ifndef FM_AGENT_PETSC_LOG_H
#define FM_AGENT_PETSC_LOG_H

/* If petsc4py.PETSc is loaded, hear of its events from now on. May leave an exception. */
void fm_petsc_log_hear(void);

#endif
