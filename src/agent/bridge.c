/* The way from the agent to libfathom.so; see bridge.h. */
#include "agent/bridge.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "agent/bridge_abi.h"

static struct {
    fathom_convert_function *convert;
    fathom_save_function *save;
    fathom_release_function *release;
} library;

static int find_library(char *path, size_t size)
{
    Dl_info info;
    if (!dladdr((void *)find_library, &info) || !info.dli_fname)
        return -1;
    const char *slash = strrchr(info.dli_fname, '/');
    int folder_len = slash ? (int)(slash - info.dli_fname) + 1 : 0;
    int len = snprintf(path, size, "%.*slibfathom.so", folder_len, info.dli_fname);
    return len > 0 && (size_t)len < size ? 0 : -1;
}

static int load_library(void)
{
    char path[4096];
    if (library.convert)
        return 0;
    void *handle = find_library(path, sizeof path) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!handle) {
        PyErr_Format(PyExc_ImportError, "fathom: cannot load its library: %s", dlerror());
        return -1;
    }
    library.save = (fathom_save_function *)dlsym(handle, "fathom_save");
    library.release = (fathom_release_function *)dlsym(handle, "fathom_release");
    library.convert = (fathom_convert_function *)dlsym(handle, "fathom_convert");
    if (!library.save || !library.release || !library.convert) {
        library.convert = NULL;
        PyErr_Format(PyExc_ImportError, "fathom: %s is not the library of this version", path);
        return -1;
    }
    return 0;
}

PyObject *fm_bridge_convert(PyObject *snapshot, const char *format)
{
    char message[1024] = "";
    char *bytes = NULL;
    size_t len = 0;
    if (load_library() < 0)
        return NULL;
    int rc = library.convert(PyBytes_AS_STRING(snapshot), (size_t)PyBytes_GET_SIZE(snapshot), format,
                             &bytes, &len, message, sizeof message);
    if (rc < 0) {
        PyErr_Format(PyExc_ValueError, "fathom: %s", message);
        return NULL;
    }
    PyObject *result = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)len);
    library.release(bytes);
    return result;
}

int fm_bridge_save(PyObject *snapshot, const char *path, int overwrite)
{
    char message[1024] = "";
    int exists = 0;
    if (load_library() < 0)
        return -1;
    int rc = library.save(PyBytes_AS_STRING(snapshot), (size_t)PyBytes_GET_SIZE(snapshot), path,
                          overwrite, &exists, message, sizeof message);
    if (rc < 0)
        PyErr_Format(exists ? PyExc_FileExistsError : PyExc_OSError, "fathom: %s", message);
    return rc < 0 ? -1 : 0;
}
