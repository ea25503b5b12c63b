/*
 * The preload library: what is loaded into every program below `fathom run`, Python or not.
 *
 * Model. The launcher starts a program with two variables: LD_PRELOAD naming this library and
 * FATHOM_RUN describing the run. In a program that is a Python, the library takes both out of the
 * environment, so that the program sees the environment it would have without Fathom, and loads the
 * agent when the interpreter is about to run its first code (python.c). In every program it puts
 * both back into the environment of whatever that program executes (exec.c, system.c), also when
 * the program made up an environment of its own.
 *
 * It links to the C library alone and must be harmless inside any program: no output, no signal
 * handler, no thread, no allocation, errno kept; whatever fails leaves the program as it is.
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
    bool active;
    char run_entry[FM_PRELOAD_RUN_MAX]; /* "FATHOM_RUN=…" as received */
    char library[FM_PRELOAD_RUN_MAX];   /* this library as LD_PRELOAD names it */
    char folder[FM_PRELOAD_RUN_MAX];    /* the run's folder */
    char agents[FM_PRELOAD_RUN_MAX];    /* the folder with the agents */
};

extern struct fm_preload fm_preload;

/* The value of FATHOM_RUN, without the variable's name. */
const char *fm_preload_config(void);

/* If this process is a Python: clean its environment and see to it that the agent starts. */
void fm_preload_python(void);

/* Add an audit hook, before the interpreter exists; 0, or -1 if it has no such thing. */
typedef int fm_preload_hook(const char *event, void *args, void *data);
int fm_preload_add_hook(fm_preload_hook *hook);
void fm_preload_hooks_end(void); /* the interpreter is about to free all hooks */

/* This process is about to execute another program: tell the agent, if it runs in this process. */
void fm_preload_before_exec(void);

/*
 * The environment for a program to be executed: `envp` with both variables in it.
 *
 * fm_environment_plan() looks at `envp` and says how many bytes the new one needs: 0 when `envp`
 * can be passed on as it is. fm_environment_fill() builds it in memory of the caller. No
 * allocation, no lock: callable between vfork and exec.
 */
struct fm_environment {
    char *const *old;
    size_t entries;      /* in `old` */
    const char *preload; /* value of LD_PRELOAD in `old`, NULL if it has none */
    bool add_run, add_preload;
    size_t bytes;
};

void fm_environment_plan(struct fm_environment *plan, char *const *envp);
char **fm_environment_fill(const struct fm_environment *plan, void *memory);

/* Take both variables out of `environ`, in place; what else LD_PRELOAD held stays. */
void fm_environment_clean(void);

/* Memory for large environments, and its return when the exec failed. NULL if there is none. */
void *fm_environment_map(size_t bytes);
void fm_environment_unmap(void *memory, size_t bytes);

/* Beyond this an environment is built in mapped memory: a thread's stack may be small. */
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
        void *mapped_ = NULL;                                                                      \
        if (plan_.bytes) {                                                                         \
            void *memory_ = plan_.bytes <= FM_ENVIRONMENT_STACK_BYTES                              \
                                ? alloca(plan_.bytes)                                              \
                                : (mapped_ = fm_environment_map(plan_.bytes));                     \
            if (memory_)                                                                           \
                env = fm_environment_fill(&plan_, memory_);                                        \
        }                                                                                          \
        call;                                                                                      \
        fm_environment_unmap(mapped_, plan_.bytes);                                                \
    } while (0)

#endif
