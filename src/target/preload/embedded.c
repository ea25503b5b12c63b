/*
 * Pythons inside other programs: finding one that is loaded late, and the first code of one that
 * nobody runs by Python's command line.
 *
 * CPython facts relied on (3.8 to 3.15):
 * - Its initialisation begins by asking for the locale, setlocale(LC_CTYPE, NULL), before there is an
 *   interpreter and before it reads the environment. A library that was loaded by dlopen, as frozen
 *   programs and servers with plugins do, is noticed by that call, which comes from its code.
 * - Py_IsInitialized is true when only `site` is still to be imported. Audit events of code that
 *   is run or imported by C, and not by Python code, come without a current frame, for which
 *   PyEval_GetGlobals is NULL. The interpreter itself does so for `site` and, when it is
 *   interactive, for `readline` and `rlcompleter`; whatever else does so is the embedding program. An
 *   ordinary start raises "cpython.run_…" before it comes to that.
 * - Some programs (those that PyInstaller freezes) run code objects, of which no event tells. Their
 *   code is noticed when it imports something: its outermost frame is not one of the import system,
 *   as that of `site` is.
 *
 * Threads: as for python.c.
 */
#include "target/preload/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* Is that module imported by the interpreter itself? */
static bool is_own_import(void *args)
{
    static const char *const own[] = { "site", "readline", "rlcompleter" };
    void *(*get_item)(void *, long) = (void *(*)(void *, long))fm_preload_symbol("PyTuple_GetItem");
    const char *(*as_utf8)(void *) = (const char *(*)(void *))fm_preload_symbol("PyUnicode_AsUTF8");
    void *item = get_item && as_utf8 ? get_item(args, 0) : NULL;
    const char *name = item ? as_utf8(item) : NULL;
    if (!name)
        return true;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(name, own[i]) == 0)
            return true;
    return false;
}

/* The API of frames; every one is a Python object to us. */
struct frames {
    void *(*current)(void);     /* PyEval_GetFrame: borrowed */
    void *(*back)(void *frame); /* PyFrame_GetBack: new, or NULL */
    void *(*code)(void *frame); /* PyFrame_GetCode: new */
    void *(*attribute)(void *object, const char *name);
    const char *(*as_utf8)(void *text);
    void (*increase)(void *object);
    void (*decrease)(void *object);
};

static bool find_frames(struct frames *f)
{
    f->current = (void *(*)(void))fm_preload_symbol("PyEval_GetFrame");
    f->back = (void *(*)(void *))fm_preload_symbol("PyFrame_GetBack");
    f->code = (void *(*)(void *))fm_preload_symbol("PyFrame_GetCode");
    f->attribute = (void *(*)(void *, const char *))fm_preload_symbol("PyObject_GetAttrString");
    f->as_utf8 = (const char *(*)(void *))fm_preload_symbol("PyUnicode_AsUTF8");
    f->increase = (void (*)(void *))fm_preload_symbol("Py_IncRef");
    f->decrease = (void (*)(void *))fm_preload_symbol("Py_DecRef");
    return f->current && f->back && f->code && f->attribute && f->as_utf8 && f->increase &&
           f->decrease;
}

/* Does the code that runs now stand on something else than the import system? */
static bool is_started_by_program(void)
{
    static const char *const imports[] = { "<frozen importlib.", "<frozen zipimport>" };
    struct frames f;
    void *frame = find_frames(&f) ? f.current() : NULL;
    if (!frame)
        return false;
    f.increase(frame);
    for (void *back; (back = f.back(frame)); frame = back)
        f.decrease(frame);
    void *code = f.code(frame), *file = f.attribute(code, "co_filename");
    const char *name = file ? f.as_utf8(file) : NULL;
    bool started = name;
    for (size_t i = 0; started && i < sizeof imports / sizeof imports[0]; i++)
        started = strncmp(name, imports[i], strlen(imports[i])) != 0;
    f.decrease(file); /* NULL does no harm */
    f.decrease(code);
    f.decrease(frame);
    return started;
}

/* The agent records one interpreter; others come and go. */
static bool is_main_interpreter(void)
{
    void *(*current)(void) = (void *(*)(void))fm_preload_symbol("PyInterpreterState_Get");
    void *(*main_one)(void) = (void *(*)(void))fm_preload_symbol("PyInterpreterState_Main");
    return current && main_one && current() == main_one();
}

bool fm_preload_is_first_code(const char *event, void *args)
{
    bool import = strcmp(event, "import") == 0;
    if (!import && strcmp(event, "compile") != 0 && strcmp(event, "exec") != 0)
        return false;
    int (*is_initialized)(void) = (int (*)(void))fm_preload_symbol("Py_IsInitialized");
    void *(*globals)(void) = (void *(*)(void))fm_preload_symbol("PyEval_GetGlobals");
    if (!is_initialized || !globals || !is_initialized() || !is_main_interpreter())
        return false;
    return globals() ? is_started_by_program() : !(import && is_own_import(args));
}

/* Look at the library that an address lies in. */
static void see_caller(void *address)
{
    Dl_info info;
    int saved_errno = errno;
    if (dladdr(address, &info) && info.dli_fname) {
        void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        if (handle && dlsym(handle, "Py_IsInitialized") && dlsym(handle, "PySys_AddAuditHook"))
            fm_preload_python_in(handle);
        else if (handle)
            dlclose(handle);
        dlerror(); /* what was not found here is nobody's error */
    }
    errno = saved_errno;
}

FM_PRELOAD_EXPORT char *setlocale(int category, const char *locale)
{
    static char *(*real)(int, const char *);
    if (!real)
        real = (char *(*)(int, const char *))dlsym(RTLD_NEXT, "setlocale");
    if (fm_preload.active && !fm_preload_has_python())
        see_caller(__builtin_return_address(0));
    return real ? real(category, locale) : NULL;
}
