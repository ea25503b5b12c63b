/*
 * The functions that execute a program, each with the run's variables put back into the environment
 * it passes on; see preload.h.
 *
 * The C library's own functions call each other directly, not through symbols, so every entry point
 * is replaced by itself: the exec family, posix_spawn and posix_spawnp,
 * and, in system.c and popen.c, system and popen. The real functions are looked up by the constructor, because
 * looking up is not safe between vfork and exec; only a call from another library's constructor,
 * before ours, looks them up late.
 *
 * Threads: any, also in a child of vfork, which shares our memory. Nothing is kept but the real
 * functions.
 */
#include "target/preload/preload.h"

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    int (*execve)(const char *, char *const *, char *const *);
    int (*execvpe)(const char *, char *const *, char *const *);
    int (*fexecve)(int, char *const *, char *const *);
    int (*posix_spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                       const posix_spawnattr_t *, char *const *, char *const *);
    int (*posix_spawnp)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                        const posix_spawnattr_t *, char *const *, char *const *);
} real;

#define LOOK_UP(name) (real.name = (__typeof__(real.name))dlsym(RTLD_NEXT, #name))

/* Before the constructor in preload.c; 101 is the earliest priority a library may use. */
__attribute__((constructor(101))) static void look_up_all(void)
{
    LOOK_UP(execve);
    LOOK_UP(execvpe);
    LOOK_UP(fexecve);
    LOOK_UP(posix_spawn);
    LOOK_UP(posix_spawnp);
}

/* The C library always has them; if not, the call fails with ENOSYS and `failed`. */
#define NEED(name, failed)                                                                         \
    do {                                                                                           \
        if (!real.name && !LOOK_UP(name)) {                                                        \
            errno = ENOSYS;                                                                        \
            return (failed);                                                                       \
        }                                                                                          \
    } while (0)

FM_PRELOAD_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    NEED(execve, -1);
    int rc;
    fm_preload_before_exec();
    FM_WITH_ENVIRONMENT(env, envp, rc = real.execve(path, argv, env));
    return rc;
}

FM_PRELOAD_EXPORT int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

FM_PRELOAD_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    NEED(execvpe, -1);
    int rc;
    fm_preload_before_exec();
    FM_WITH_ENVIRONMENT(env, envp, rc = real.execvpe(file, argv, env));
    return rc;
}

FM_PRELOAD_EXPORT int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

FM_PRELOAD_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    NEED(fexecve, -1);
    int rc;
    fm_preload_before_exec();
    FM_WITH_ENVIRONMENT(env, envp, rc = real.fexecve(fd, argv, env));
    return rc;
}

FM_PRELOAD_EXPORT int execveat(int folder, const char *path, char *const argv[], char *const envp[],
                               int flags)
{
    int rc; /* by its number: the C library has the function only since 2.34 */
    fm_preload_before_exec();
    FM_WITH_ENVIRONMENT(env, envp, rc = (int)syscall(SYS_execveat, folder, path, argv, env, flags));
    return rc;
}

/* The variadic ones. The arguments are counted, then gathered on the stack, as in the C library. */
static size_t count_arguments(va_list ap)
{
    size_t count = 1;
    while (va_arg(ap, char *))
        count++;
    return count;
}

/* Declares argv[] holding `first` and what follows it, and sets `ap` behind the final NULL. */
#define GATHER_ARGUMENTS(ap, first)                                                                \
    va_start(ap, first);                                                                           \
    size_t count_ = count_arguments(ap);                                                           \
    va_end(ap);                                                                                    \
    char *argv[count_ + 1];                                                                        \
    argv[0] = (char *)(first);                                                                     \
    va_start(ap, first);                                                                           \
    for (size_t i_ = 1; i_ <= count_; i_++)                                                        \
    argv[i_] = va_arg(ap, char *)

FM_PRELOAD_EXPORT int execl(const char *path, const char *arg, ...)
{
    va_list ap;
    GATHER_ARGUMENTS(ap, arg);
    va_end(ap);
    return execve(path, argv, environ);
}

FM_PRELOAD_EXPORT int execlp(const char *file, const char *arg, ...)
{
    va_list ap;
    GATHER_ARGUMENTS(ap, arg);
    va_end(ap);
    return execvpe(file, argv, environ);
}

FM_PRELOAD_EXPORT int execle(const char *path, const char *arg, ...)
{
    va_list ap;
    GATHER_ARGUMENTS(ap, arg);
    char *const *envp = va_arg(ap, char *const *);
    va_end(ap);
    return execve(path, argv, envp);
}

FM_PRELOAD_EXPORT int posix_spawn(pid_t *pid, const char *path,
                                  const posix_spawn_file_actions_t *actions,
                                  const posix_spawnattr_t *attributes, char *const argv[],
                                  char *const envp[])
{
    NEED(posix_spawn, ENOSYS);
    int rc;
    FM_WITH_ENVIRONMENT(env, envp,
                        rc = real.posix_spawn(pid, path, actions, attributes, argv, env));
    return rc;
}

FM_PRELOAD_EXPORT int posix_spawnp(pid_t *pid, const char *file,
                                   const posix_spawn_file_actions_t *actions,
                                   const posix_spawnattr_t *attributes, char *const argv[],
                                   char *const envp[])
{
    NEED(posix_spawnp, ENOSYS);
    int rc;
    FM_WITH_ENVIRONMENT(env, envp,
                        rc = real.posix_spawnp(pid, file, actions, attributes, argv, env));
    return rc;
}
