/* fathom.region, in the module fathom._agent: what `with fathom.region("name"):` enters and leaves; see regions.h. */
#ifndef FM_AGENT_REGION_TYPE_H
#define FM_AGENT_REGION_TYPE_H

#include "target/agent/python.h"

/* The type, new; NULL with an exception. */
PyObject *fm_region_type_new(PyObject *module);

/* Its methods; where FM_WITH_BINDS is not set, `__enter__` and `__exit__` are the first two. */
extern PyMethodDef fm_region_methods[];

#endif
