/*
 * Finding out that this process is a Python, and starting the agent in it.
 *
 * CPython facts relied on: PySys_AddAuditHook (3.8+) may be called before the interpreter exists;
 * the events "cpython.run_command", "…run_file", "…run_module", "…run_stdin", "…run_startup" and
 * "…run_interactivehook" are raised with the GIL held when the interpreter is complete, `site` has
 * run, and the program's first code is about to. Py_GetVersion needs no interpreter. A program that
 * embeds Python and runs code in its own way raises none of these; embedded.c knows its first code.
 *
 * The interpreter is known only by its symbols: this library serves every version with one binary.
 *
 * Threads: the hook may be called by any thread of any interpreter; the agent starts once.
 */
#include "target/preload/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define PLATFORM "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define PLATFORM "aarch64-linux-gnu"
#elif defined(__powerpc64__)
#define PLATFORM "powerpc64le-linux-gnu"
#elif defined(__riscv)
#define PLATFORM "riscv64-linux-gnu"
#elif defined(__s390x__)
#define PLATFORM "s390x-linux-gnu"
#else
#define PLATFORM "unknown"
#endif

#define MAX_NOTES_PER_PID 10000
#define OLDEST_AGENT      11 /* 3.11, and no free-threaded one */
#define OLDEST_SAMPLED    9

static void *interpreter;   /* dlopen's handle of the library it is in; NULL: symbols are global */
static atomic_bool waiting; /* for the program's first code */
static const char *version; /* "3.13.0 (main, …) [GCC …]" */
static atomic_flag started = ATOMIC_FLAG_INIT;
static void (*_Atomic agent_audit)(const char *event, void *args);
static void (*_Atomic agent_end)(void);
static pid_t agent_pid; /* the process it was started in */
static void (*_Atomic heap_before_exec)(void);

/* Read up to `bytes` - 1 of /proc/self/cmdline into `text`, as one line; of a run that leaves
 * arguments out the program alone. */
static void read_command(char *text, size_t bytes)
{
    ssize_t len = 0;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        len = read(fd, text, bytes - 1);
        close(fd);
    }
    while (len > 0 && text[len - 1] == '\0')
        len--;
    text[len > 0 ? len : 0] = '\0';
    if (fm_preload.redact && len > (ssize_t)strlen(text)) {
        len = (ssize_t)strlen(text);
        len += snprintf(text + len, bytes - (size_t)len, " …");
        len = len < (ssize_t)bytes ? len : (ssize_t)bytes - 1;
    }
    for (ssize_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ')
            text[i] = ' ';
}

/* The executable of this process; "" if unknown. */
static void read_exe(char *exe, size_t bytes)
{
    ssize_t len = readlink("/proc/self/exe", exe, bytes - 1);
    exe[len > 0 ? len : 0] = '\0';
}

/* Leave a note in the run's folder that this Python was not profiled, and why. */
static void note_unprofiled(const char *reason)
{
    char path[FM_PRELOAD_RUN_MAX + 64], exe[1024], command[2048];
    int fd = -1;
    for (int n = 0; fd < 0 && n < MAX_NOTES_PER_PID; n++) {
        snprintf(path, sizeof path, "%s/%d.%d.unprofiled", fm_preload.folder, (int)getpid(), n);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            return;
    }
    if (fd < 0)
        return;
    read_exe(exe, sizeof exe);
    read_command(command, sizeof command);
    dprintf(fd, "parent=%d\nexe=%s\nversion=%.*s\ncommand=%s\nreason=%s\n", (int)getppid(), exe,
            (int)strcspn(version, " \n"), version, command, reason);
    close(fd);
}

/* sys.abiflags: "" for most, "t" free-threaded, "d" debug. */
static void read_abiflags(char *flags, size_t bytes)
{
    flags[0] = '\0';
    void *(*get_object)(const char *) =
        (void *(*)(const char *))fm_preload_symbol("PySys_GetObject");
    const char *(*as_utf8)(void *) = (const char *(*)(void *))fm_preload_symbol("PyUnicode_AsUTF8");
    if (!get_object || !as_utf8)
        return;
    void *object = get_object("abiflags");
    const char *text = object ? as_utf8(object) : NULL;
    if (text)
        snprintf(flags, bytes, "%s", text);
}

static void parse_version(long *ret_major, long *ret_minor)
{
    char *end;
    *ret_major = strtol(version, &end, 10);
    *ret_minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
}

/* … and how to get one, or what works without. */
static const char *no_agent(const char *flags)
{
    static char reason[1536];
    char exe[1024];
    long major, minor;
    parse_version(&major, &minor);
    read_exe(exe, sizeof exe);
    int len = snprintf(reason, sizeof reason, "there is no agent for CPython %ld.%ld%s", major,
                       minor, flags);
    if (major == 3 && minor >= OLDEST_AGENT && !*flags)
        snprintf(reason + len, sizeof reason - (size_t)len,
                 "; `%s -m pip install .` in Fathom's source builds one", exe);
    else if (major == 3 && minor >= OLDEST_SAMPLED)
        snprintf(reason + len, sizeof reason - (size_t)len,
                 "; `fathom run` without --calls, --trace and --lines samples it");
    return reason;
}

/* Load the agent made for exactly this interpreter and start it. NULL, or why that failed. */
static const char *start_agent(void)
{
    static char reason[512];
    char path[FM_PRELOAD_RUN_MAX + 128], flags[16];
    long major, minor;
    parse_version(&major, &minor);
    read_abiflags(flags, sizeof flags);
    snprintf(path, sizeof path, "%s/_agent.cpython-%ld%ld%s-%s.so", fm_preload.agents, major, minor,
             flags, PLATFORM);
    if (access(path, R_OK) != 0)
        return no_agent(flags);
    /* The agent finds the interpreter by its global symbols. Making them global would let the
     * program load extension modules that it could not load without us. */
    if (!dlsym(RTLD_DEFAULT, "Py_GetVersion"))
        return "its library was loaded by the program for itself alone (RTLD_LOCAL), where no agent "
               "can be; `fathom run` without --calls, --trace and --lines samples it";
    void *agent = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!agent) {
        const char *why = dlerror();
        snprintf(reason, sizeof reason, "the agent cannot be loaded: %s", why ? why : "no reason");
        return reason;
    }
    int (*start)(const char *) = (int (*)(const char *))dlsym(agent, "fathom_agent_start");
    if (!start)
        return "the agent has no fathom_agent_start";
    errno = 0;
    if (start(fm_preload_config()) < 0) {
        snprintf(reason, sizeof reason, "the agent could not start%s%s", errno ? ": " : "",
                 errno ? strerror(errno) : "");
        return reason;
    }
    agent_pid = getpid();
    agent_audit = (void (*)(const char *, void *))dlsym(agent, "fathom_agent_audit");
    agent_end = (void (*)(void))dlsym(agent, "fathom_agent_end");
    return NULL;
}

void fm_preload_before_exec(void)
{
    void (*end)(void) = agent_end;
    /* A child of vfork, which shares this memory, is another process and ends nothing. */
    if (end && getpid() == agent_pid)
        end();
    void (*leave)(void) = heap_before_exec;
    if (leave)
        leave();
}

/* The interpreter is complete and about to run the program's first code. */
static void start_once(void)
{
    if (atomic_flag_test_and_set(&started))
        return;
    int saved_errno = errno;
    waiting = false;
    const char *reason = start_agent();
    if (reason)
        note_unprofiled(reason);
    errno = saved_errno;
}

static int on_audit(const char *event, void *args, void *data)
{
    (void)data;
    /* Nearly every event ends here, after some comparisons of a byte. */
    if (atomic_load_explicit(&waiting, memory_order_relaxed) &&
        (event[0] == 'c' || event[0] == 'e' || event[0] == 'i') &&
        fm_preload_is_first_code(event, args))
        start_once();
    if (event[0] != 'c' && event[0] != 'e')
        return 0;
    if (strcmp(event, "compile") == 0 || strcmp(event, "exec") == 0) {
        void (*audit)(const char *, void *) = agent_audit;
        if (audit)
            audit(event, args);
        return 0;
    }
    if (strcmp(event, "cpython._PySys_ClearAuditHooks") == 0)
        fm_preload_hooks_end();
    if (strncmp(event, "cpython.run_", strlen("cpython.run_")) == 0)
        start_once();
    return 0;
}

void *fm_preload_symbol(const char *name)
{
    return dlsym(interpreter ? interpreter : RTLD_DEFAULT, name);
}

/* There is an interpreter in this process, not initialised yet. */
static void find_python(void)
{
    const char *(*get_version)(void) = (const char *(*)(void))fm_preload_symbol("Py_GetVersion");
    if (!get_version)
        return;
    version = get_version();
    waiting = true;
    void (*heap)(const char *) = (void (*)(const char *))dlsym(RTLD_DEFAULT, "fathom_heap_start");
    if (heap)
        heap(fm_preload_config());
    heap_before_exec = (void (*)(void))dlsym(RTLD_DEFAULT, "fathom_heap_before_exec");
    fm_environment_clean();
    if (fm_preload_add_hook(on_audit) < 0 && fm_preload_symbol("Py_Main"))
        note_unprofiled(no_agent(""));
}

void fm_preload_python(void)
{
    find_python();
}

bool fm_preload_has_python(void)
{
    return version;
}

void fm_preload_python_in(void *handle)
{
    interpreter = handle;
    find_python();
}
