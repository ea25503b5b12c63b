/* fathom.region, in the module fathom._agent: what `with fathom.region("name"):` enters and leaves; see regions.h. */
#ifndef FM_AGENT_REGION_TYPE_H
#define FM_AGENT_REGION_TYPE_H

#include "target/agent/python.h"

/* The type, new; NULL with an exception. */
PyObject *fm_region_type_new(PyObject *module);

#endif
