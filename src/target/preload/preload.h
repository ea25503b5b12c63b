/*
 * The preload library: what is loaded into every program below `fathom run`, Python or not.
 *
 * Model. The launcher starts a program with two variables: LD_PRELOAD naming this library and
 * FATHOM_RUN describing the run. In a program that is a Python, the library takes both out of the
 * environment, so that the program sees the environment it would have without Fathom, and loads the
 * agent when the interpreter is about to run its first code (python.c, embedded.c). In every program
 * it puts both back into the environment of whatever that program executes (exec.c, system.c,
 * popen.c), also when the program made up an environment of its own; but not when whoever executes
 * may not read this library.
 *
 * It links to the C library alone and must be harmless inside any program: no output, no signal
 * handler, no thread, no allocation (but popen's own), errno kept; whatever fails leaves the
 * program as it is.
 *
 * Threads: everything in fm_preload is written by the constructor, before main, and only read after
 * it. The functions of exec.c also run in children between vfork and exec.
 */
#ifndef FM_PRELOAD_PRELOAD_H
#define FM_PRELOAD_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>

#define FM_PRELOAD_RUN_MAX         4096 /* bytes of the whole FATHOM_RUN entry */
#define FM_PRELOAD_FIELD_SEPARATOR '\x1f'

#define FM_PRELOAD_EXPORT __attribute__((visibility("default")))

/* The one piece of state. `active` is false outside a run: then calls are passed on as they are. */
struct fm_preload {
    bool active, redact;
    char run_entry[FM_PRELOAD_RUN_MAX]; /* "FATHOM_RUN=…" as received */
    char library[FM_PRELOAD_RUN_MAX];   /* this library as LD_PRELOAD names it */
    char heap[FM_PRELOAD_RUN_MAX];      /* the heap library, the same; "" without --memory */
    char folder[FM_PRELOAD_RUN_MAX];    /* the run's folder */
    char agents[FM_PRELOAD_RUN_MAX];    /* the folder with the agents */
};

extern struct fm_preload fm_preload;

/* The value of FATHOM_RUN, without the variable's name. */
const char *fm_preload_config(void);

/* If this process is a Python: clean its environment and see to it that the agent starts. */
void fm_preload_python(void);

/* A library that the program has loaded by itself is a Python about to initialise: the same. `handle`
 * is dlopen's; the library stays. */
void fm_preload_python_in(void *handle);

bool fm_preload_has_python(void); /* is one known? */

/* A symbol of this process's interpreter, or of all that is global while none is known. */
void *fm_preload_symbol(const char *name);

/* Is this audit event the first code of a program that embeds Python (embedded.c)? `args` is the
 * event's tuple. */
bool fm_preload_is_first_code(const char *event, void *args);

/* Add an audit hook, before the interpreter exists; 0, or -1 if it has no such thing. */
typedef int fm_preload_hook(const char *event, void *args, void *data);
int fm_preload_add_hook(fm_preload_hook *hook);
void fm_preload_hooks_end(void); /* the interpreter is about to free all hooks */

/* The words that run a command in a shell, as the C library's own functions have them. */
#define FM_SHELL       "/bin/sh"
#define FM_SHELL_WORDS 5 /* with the NULL */
void fm_shell_words(const char *command, char *words[FM_SHELL_WORDS]);

/* This process is about to execute another program: tell the agent, if it runs in this process. */
void fm_preload_before_exec(void);

/*
 * The environment for a program to be executed: `envp` with both variables in it; without them if
 * that program could not read the library, because its loader would say so.
 *
 * fm_environment_plan() looks at `envp` and says how many bytes the new one needs: 0 when `envp`
 * can be passed on as it is. fm_environment_fill() builds it in memory of the caller. No
 * allocation, no lock: callable between vfork and exec. `environ` itself and what it points at are
 * never changed after the constructor: any thread may be reading it.
 */
struct fm_environment {
    char *const *old;
    size_t entries;      /* in `old` */
    const char *preload; /* value of LD_PRELOAD in `old`, NULL if it has none */
    bool add_run, add_preload, remove;
    size_t bytes;
};

void fm_environment_plan(struct fm_environment *plan, char *const *envp);
char **fm_environment_fill(const struct fm_environment *plan, void *memory);

/* Is `environ` not what must be passed on? Then the C library's own system() and popen() will not
 * do. */
bool fm_environment_differs(void);

/* Take both variables out of `environ`, in place; what else LD_PRELOAD held stays. The constructor
 * alone may do that. */
void fm_environment_clean(void);

/* Memory for a large environment: the calling thread's, until it asks again. NULL if there is
 * none. */
void *fm_environment_memory(size_t bytes);

/* Beyond this an environment is not built on the stack: a thread's may be small. */
#define FM_ENVIRONMENT_STACK_BYTES 8192

/*
 * Run `call` with `env` set to the environment to pass on instead of `envp`. A macro, because the
 * memory must be on the stack of the function that makes the call.
 */
#define FM_WITH_ENVIRONMENT(env, envp, call)                                                       \
    do {                                                                                           \
        struct fm_environment plan_;                                                               \
        fm_environment_plan(&plan_, (envp));                                                       \
        char *const *env = plan_.old;                                                              \
        if (plan_.bytes) {                                                                         \
            void *memory_ = plan_.bytes <= FM_ENVIRONMENT_STACK_BYTES                              \
                                ? alloca(plan_.bytes)                                              \
                                : fm_environment_memory(plan_.bytes);                              \
            if (memory_)                                                                           \
                env = fm_environment_fill(&plan_, memory_);                                        \
        }                                                                                          \
        call;                                                                                      \
    } while (0)

#endif
