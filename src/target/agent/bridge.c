/* The way from the agent to libfathom.so; see bridge.h. */
#include "target/agent/bridge.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "target/agent/bridge_abi.h"

static struct {
    fathom_convert_function *convert;
    fathom_save_function *save;
    fathom_alive_function *alive;
    fathom_late_function *late;
    fathom_release_function *release;
} library;

int fm_bridge_find(const char *name, char *path, size_t size)
{
    Dl_info info;
    if (!dladdr((void *)fm_bridge_find, &info) || !info.dli_fname)
        return -1;
    const char *slash = strrchr(info.dli_fname, '/');
    int folder_len = slash ? (int)(slash - info.dli_fname) + 1 : 0;
    int len = snprintf(path, size, "%.*s%s", folder_len, info.dli_fname, name);
    return len > 0 && (size_t)len < size ? 0 : -1;
}

static int load_library(void)
{
    char path[4096] = "";
    if (library.convert)
        return 0;
    void *handle = fm_bridge_find("libfathom.so", path, sizeof path) == 0
                       ? dlopen(path, RTLD_NOW | RTLD_LOCAL)
                       : NULL;
    if (!handle) {
        const char *why = dlerror();
        PyErr_Format(PyExc_ImportError, "fathom: cannot load its library: %s", why ? why : path);
        return -1;
    }
    library.save = (fathom_save_function *)dlsym(handle, "fathom_save");
    library.alive = (fathom_alive_function *)dlsym(handle, "fathom_alive");
    library.late = (fathom_late_function *)dlsym(handle, "fathom_late");
    library.release = (fathom_release_function *)dlsym(handle, "fathom_release");
    library.convert = (fathom_convert_function *)dlsym(handle, "fathom_convert");
    if (!library.save || !library.alive || !library.late || !library.release || !library.convert) {
        library.convert = NULL;
        PyErr_Format(PyExc_ImportError, "fathom: %s is not the library of this version", path);
        return -1;
    }
    return 0;
}

/* The live stores of a list of (snapshot, …) pairs; NULL with an exception. */
static struct fathom_live *lives_of(PyObject *snapshots)
{
    Py_ssize_t count = PyList_GET_SIZE(snapshots);
    struct fathom_live *lives = PyMem_Calloc((size_t)count + 1, sizeof *lives);
    for (Py_ssize_t i = 0; lives && i < count; i++) {
        PyObject *pair = PyList_GET_ITEM(snapshots, i);
        PyObject *bytes =
            PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) ? PyTuple_GET_ITEM(pair, 0) : NULL;
        if (!bytes || !PyBytes_Check(bytes)) {
            PyMem_Free(lives);
            PyErr_SetString(PyExc_TypeError, "snapshots must be pairs that begin with bytes");
            return NULL;
        }
        lives[i] =
            (struct fathom_live){ PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes) };
    }
    return lives ? lives : (struct fathom_live *)PyErr_NoMemory();
}

static PyObject *fail(int rc, PyObject *type, const char *message)
{
    return rc == FATHOM_NO_MEMORY ? PyErr_NoMemory() : PyErr_Format(type, "fathom: %s", message);
}

PyObject *fm_bridge_convert(PyObject *snapshots, const char *format)
{
    char message[1024] = "";
    char *bytes = NULL;
    size_t len = 0;
    struct fathom_live *lives = load_library() < 0 ? NULL : lives_of(snapshots);
    if (!lives)
        return NULL;
    int rc = library.convert(lives, (size_t)PyList_GET_SIZE(snapshots), format, &bytes, &len,
                             message, sizeof message);
    PyMem_Free(lives);
    if (rc < 0)
        return fail(rc, PyExc_ValueError, message);
    PyObject *result = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)len);
    library.release(bytes);
    return result;
}

int fm_bridge_save(PyObject *snapshots, const char *path, int overwrite)
{
    char message[1024] = "";
    int exists = 0;
    struct fathom_live *lives = load_library() < 0 ? NULL : lives_of(snapshots);
    if (!lives)
        return -1;
    int rc = library.save(lives, (size_t)PyList_GET_SIZE(snapshots), path, overwrite, &exists,
                          message, sizeof message);
    PyMem_Free(lives);
    if (rc < 0)
        fail(rc, exists ? PyExc_FileExistsError : PyExc_OSError, message);
    return rc < 0 ? -1 : 0;
}

PyObject *fm_bridge_alive(const char *path, bool contexts)
{
    char message[1024] = "";
    char *bytes = NULL;
    size_t len = 0;
    if (load_library() < 0)
        return NULL;
    int rc = library.alive(path, contexts, &bytes, &len, message, sizeof message);
    if (rc < 0)
        return fail(rc, PyExc_OSError, message);
    PyObject *result = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)len);
    library.release(bytes);
    return result;
}

int fm_bridge_late(const char *folder, const char *path, int overwrite)
{
    char message[1024] = "", version[64];
    int exists = 0;
    if (load_library() < 0)
        return -1;
    snprintf(version, sizeof version, "%.*s", (int)strcspn(Py_GetVersion(), " "), Py_GetVersion());
    int rc = library.late(folder, version, path, overwrite, &exists, message, sizeof message);
    if (rc < 0)
        fail(rc, exists ? PyExc_FileExistsError : PyExc_OSError, message);
    return rc < 0 ? -1 : 0;
}
