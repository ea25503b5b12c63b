/*
 * Makes the n-th call of a function fail, for tests: preloaded into the command, or into the program
 * under it, where only calls from Fathom's own libraries count (the program's own never fail).
 *
 *   FAULT_KIND   malloc, mmap, space, open, write, rename, clone, python: see below
 *   FAULT_AT     which call fails, from 1
 *   FAULT_MANY   1: all later ones fail too
 *   FAULT_WHERE  command, or target
 *   FAULT_TOLD   a file that gets a byte when a call was made to fail
 *
 * or, from inside a process, fault_arm().
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { NONE, MALLOC, MMAP, SPACE, OPEN, WRITE, RENAME, CLONE, PYTHON };
static const char *const names[] = { "",      "malloc", "mmap",  "space", "open",
                                     "write", "rename", "clone", "python" };

static enum kind armed;
static bool many, everywhere;
static long at;
static const char *told;
static atomic_long calls, reached;

void fault_arm(int kind, long which, int all)
{
    armed = NONE;
    calls = reached = 0;
    at = which;
    many = all;
    armed = kind;
}

long fault_reached(void)
{
    return reached;
}

__attribute__((constructor)) static void begin(void)
{
    const char *kind = getenv("FAULT_KIND"), *where = getenv("FAULT_WHERE");
    everywhere = strcmp(program_invocation_short_name, "fathom") == 0;
    if (!kind || !where || everywhere != (strcmp(where, "command") == 0))
        return;
    told = getenv("FAULT_TOLD");
    for (int i = 1; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(names[i], kind) == 0)
            fault_arm(i, atol(getenv("FAULT_AT")), getenv("FAULT_MANY")[0] == '1');
}

static bool is_ours(void *caller)
{
    struct dl_find_object found;
    if (everywhere)
        return true;
    if (_dl_find_object(caller, &found) != 0)
        return false;
    const char *slash = strrchr(found.dlfo_link_map->l_name, '/');
    return slash &&
           (strncmp(slash + 1, "libfathom", 9) == 0 || strncmp(slash + 1, "_agent.", 7) == 0);
}

static bool fails(enum kind kind, void *caller)
{
    if (kind != armed || !is_ours(caller))
        return false;
    long n = ++calls;
    if (n != at && !(many && n > at))
        return false;
    if (reached++ == 0 && told) {
        int fd = (int)syscall(SYS_openat, AT_FDCWD, told, O_WRONLY | O_APPEND | O_CLOEXEC);
        syscall(SYS_write, fd, "x", 1);
        syscall(SYS_close, fd);
    }
    return true;
}

#define FAILS(kind) fails(kind, __builtin_return_address(0))

/* A function that is passed on unless it fails: by errno, or by what it returns. */
#define PASS(kind, type, name, failed, number, parameters, ...)                                    \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*real) parameters;                                                             \
        if (FAILS(kind)) {                                                                         \
            errno = number;                                                                        \
            return failed;                                                                         \
        }                                                                                          \
        if (!real)                                                                                 \
            real = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                    \
        return real(__VA_ARGS__);                                                                  \
    }

/* ---- memory ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t bytes)
{
    return FAILS(MALLOC) ? no_memory() : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return FAILS(MALLOC) ? no_memory() : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return FAILS(MALLOC) ? no_memory() : __libc_realloc(old, bytes);
}

PASS(MMAP, void *, mmap, MAP_FAILED, ENOMEM, (void *a, size_t n, int p, int f, int fd, off_t o), a,
     n, p, f, fd, o)
PASS(MMAP, void *, mmap64, MAP_FAILED, ENOMEM, (void *a, size_t n, int p, int f, int fd, off64_t o),
     a, n, p, f, fd, o)

/* The heap library maps by the system call: mmap itself is its to count. What it passes on for the program
 * comes through here, too, but has none of these flags. */
long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_mmap && a[3] & (MAP_NORESERVE | MAP_SHARED) && FAILS(MMAP)) {
        errno = ENOMEM;
        return -1;
    }
    if (!real)
        real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- files ---- */

PASS(SPACE, int, ftruncate, -1, ENOSPC, (int fd, off_t n), fd, n)
PASS(SPACE, int, ftruncate64, -1, ENOSPC, (int fd, off64_t n), fd, n)
PASS(SPACE, int, posix_fallocate, ENOSPC, 0, (int fd, off_t o, off_t n), fd, o, n)
PASS(SPACE, int, posix_fallocate64, ENOSPC, 0, (int fd, off64_t o, off64_t n), fd, o, n)

#define OPEN_BODY(call)                                                                            \
    va_list args;                                                                                  \
    va_start(args, flags);                                                                         \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;                        \
    va_end(args);                                                                                  \
    if (FAILS(OPEN)) {                                                                             \
        errno = EMFILE;                                                                            \
        return -1;                                                                                 \
    }                                                                                              \
    return (int)call

int open(const char *path, int flags, ...)
{
    OPEN_BODY(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int open64(const char *path, int flags, ...)
{
    OPEN_BODY(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int openat(int folder, const char *path, int flags, ...)
{
    OPEN_BODY(syscall(SYS_openat, folder, path, flags, mode));
}

int openat64(int folder, const char *path, int flags, ...)
{
    OPEN_BODY(syscall(SYS_openat, folder, path, flags, mode));
}

PASS(OPEN, int, mkostemp64, -1, EMFILE, (char *path, int flags), path, flags)
PASS(OPEN, char *, mkdtemp, NULL, EACCES, (char *path), path)
PASS(OPEN, FILE *, fopen64, NULL, EMFILE, (const char *path, const char *mode), path, mode)
PASS(OPEN, int, dup, -1, EMFILE, (int fd), fd)
PASS(OPEN, int, pipe2, -1, EMFILE, (int fds[2], int flags), fds, flags)

/* Not what is said on the standard streams. */
ssize_t write(int fd, const void *bytes, size_t len)
{
    if (fd > 2 && FAILS(WRITE)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_write, fd, bytes, len);
}

ssize_t writev(int fd, const struct iovec *pieces, int count)
{
    if (fd > 2 && FAILS(WRITE)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_writev, fd, pieces, count);
}

PASS(RENAME, int, rename, -1, ENOSPC, (const char *from, const char *to), from, to)
PASS(RENAME, int, renameat2, -1, ENOSPC,
     (int a, const char *from, int b, const char *to, unsigned flags), a, from, b, to, flags)
PASS(RENAME, int, link, -1, ENOSPC, (const char *from, const char *to), from, to)
PASS(RENAME, int, linkat, -1, ENOSPC, (int a, const char *from, int b, const char *to, int flags),
     a, from, b, to, flags)

/* ---- processes and threads ---- */

PASS(CLONE, pid_t, fork, -1, EAGAIN, (void))
PASS(CLONE, int, posix_spawnp, EAGAIN, 0,
     (pid_t * pid, const char *file, const posix_spawn_file_actions_t *actions,
      const posix_spawnattr_t *attributes, char *const *argv, char *const *envp),
     pid, file, actions, attributes, argv, envp)
PASS(CLONE, int, pthread_create, EAGAIN, 0,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg),
     thread, attributes, run, arg)

/* ---- Python's own, called by the agent ---- */

static void *raise_no_memory(void)
{
    void *(*set)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyErr_NoMemory");
    return set ? set() : NULL;
}

#define PYTHON_NEW(name, parameters, ...)                                                          \
    void *name parameters                                                                          \
    {                                                                                              \
        static void *(*real)parameters;                                                            \
        if (FAILS(PYTHON))                                                                         \
            return raise_no_memory();                                                              \
        if (!real)                                                                                 \
            real = (void *(*)parameters)dlsym(RTLD_NEXT, #name);                                   \
        return real(__VA_ARGS__);                                                                  \
    }

#define PYTHON_SET(name, parameters, ...)                                                          \
    int name parameters                                                                            \
    {                                                                                              \
        static int(*real) parameters;                                                              \
        if (FAILS(PYTHON)) {                                                                       \
            raise_no_memory();                                                                     \
            return -1;                                                                             \
        }                                                                                          \
        if (!real)                                                                                 \
            real = (int(*) parameters)dlsym(RTLD_NEXT, #name);                                     \
        return real(__VA_ARGS__);                                                                  \
    }

void *PyMem_RawCalloc(size_t count, size_t bytes)
{
    static void *(*real)(size_t, size_t);
    if (FAILS(PYTHON))
        return NULL;
    if (!real)
        real = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "PyMem_RawCalloc");
    return real(count, bytes);
}

void *PyMem_Calloc(size_t count, size_t bytes)
{
    static void *(*real)(size_t, size_t);
    if (FAILS(PYTHON))
        return NULL;
    if (!real)
        real = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "PyMem_Calloc");
    return real(count, bytes);
}

PYTHON_NEW(PyBytes_FromString, (const char *s), s)
PYTHON_NEW(PyBytes_FromStringAndSize, (const char *s, ssize_t n), s, n)
PYTHON_NEW(PyCMethod_New, (void *a, void *b, void *c, void *d), a, b, c, d)
PYTHON_NEW(PyCode_GetCode, (void *a), a)
PYTHON_NEW(PyCode_NewEmpty, (const char *a, const char *b, int n), a, b, n)
PYTHON_NEW(PyDict_New, (void))
PYTHON_NEW(PyDict_Values, (void *a), a)
PYTHON_NEW(PyEval_EvalCode, (void *a, void *b, void *c), a, b, c)
PYTHON_NEW(PyList_GetSlice, (void *a, ssize_t b, ssize_t c), a, b, c)
PYTHON_NEW(PyList_New, (ssize_t n), n)
PYTHON_NEW(PyLong_FromLong, (long n), n)
PYTHON_NEW(PyLong_FromUnsignedLong, (unsigned long n), n)
PYTHON_NEW(PyLong_FromVoidPtr, (void *a), a)
PYTHON_NEW(PyObject_CallOneArg, (void *a, void *b), a, b)
PYTHON_NEW(PyObject_GenericGetAttr, (void *a, void *b), a, b)
PYTHON_NEW(PyObject_GetAttrString, (void *a, const char *b), a, b)
PYTHON_NEW(PyObject_Repr, (void *a), a)
PYTHON_NEW(PyType_FromModuleAndSpec, (void *a, void *b, void *c), a, b, c)
PYTHON_NEW(PyType_FromSpec, (void *a), a)
PYTHON_NEW(PyUnicode_AsEncodedString, (void *a, const char *b, const char *c), a, b, c)
PYTHON_NEW(PyUnicode_AsUTF8, (void *a), a)
PYTHON_NEW(PyUnicode_AsUTF8AndSize, (void *a, ssize_t *b), a, b)
PYTHON_NEW(PyUnicode_FromString, (const char *a), a)
PYTHON_NEW(PyWeakref_NewRef, (void *a, void *b), a, b)
PYTHON_NEW(Py_CompileStringExFlags, (const char *a, const char *b, int c, void *d, int e), a, b, c,
           d, e)
PYTHON_NEW(_PyObject_New, (void *a), a)
PYTHON_SET(PyDict_SetItem, (void *a, void *b, void *c), a, b, c)
PYTHON_SET(PyDict_SetItemString, (void *a, const char *b, void *c), a, b, c)
PYTHON_SET(PyList_Append, (void *a, void *b), a, b)
PYTHON_SET(PyUnstable_Code_SetExtra, (void *a, ssize_t b, void *c), a, b, c)
PYTHON_SET(_PyCode_SetExtra, (void *a, ssize_t b, void *c), a, b, c)

void *PyUnicode_FromFormat(const char *format, ...)
{
    static void *(*real)(const char *, va_list);
    if (FAILS(PYTHON))
        return raise_no_memory();
    if (!real)
        real = (void *(*)(const char *, va_list))dlsym(RTLD_NEXT, "PyUnicode_FromFormatV");
    va_list args;
    va_start(args, format);
    void *text = real(format, args);
    va_end(args);
    return text;
}

/* Variadic, and without a form that takes a list: passed on as it came. */
void *PyObject_CallMethod(void *object, const char *name, const char *format, ...)
{
    static void (*real)();
    (void)object, (void)name, (void)format;
    void *arguments = __builtin_apply_args();
    if (FAILS(PYTHON))
        return raise_no_memory();
    if (!real)
        real = (void (*)())dlsym(RTLD_NEXT, "PyObject_CallMethod");
    __builtin_return(__builtin_apply(real, arguments, 64));
}

/* Memory for the value of a key beyond the first few. */
int pthread_setspecific(pthread_key_t key, const void *value)
{
    static int (*real)(pthread_key_t, const void *);
    if (FAILS(MALLOC))
        return ENOMEM;
    if (!real)
        real = (int (*)(pthread_key_t, const void *))dlsym(RTLD_NEXT, "pthread_setspecific");
    return real(key, value);
}
