/* Starting a program in two steps; see spawn.h. */
#include "watch/os/run/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child's part: wait for the word, then become the program. */
__attribute__((noreturn)) static void become(int go_fd, int failed_fd, const char *file,
                                             char *const argv[], char *const envp[],
                                             const struct fm_relay *relay)
{
    char go;
    ssize_t got;
    do
        got = read(go_fd, &go, 1);
    while (got < 0 && errno == EINTR);
    if (got != 1)
        _exit(0);
    fm_relay_undo(relay);
    execvpe(file, argv, envp);
    int errnum = errno;
    ssize_t ignored = write(failed_fd, &errnum, sizeof errnum);
    (void)ignored;
    _exit(127);
}

int fm_spawn_make(struct fm_spawn *spawn, const char *file, char *const argv[], char *const envp[],
                  const struct fm_relay *relay, struct fm_error *err)
{
    int go[2], failed[2];
    if (pipe2(go, O_CLOEXEC) != 0)
        return fm_error_set_errno(err, FM_SYSTEM, errno, "no pipe can be made");
    if (pipe2(failed, O_CLOEXEC) != 0) {
        int errnum = errno;
        close(go[0]);
        close(go[1]);
        return fm_error_set_errno(err, FM_SYSTEM, errnum, "no pipe can be made");
    }
    spawn->pid = fork();
    if (spawn->pid == 0) {
        /* Its own copy of the writing end would keep the pipe open for ever if we died. */
        close(go[1]);
        close(failed[0]);
        become(go[0], failed[1], file, argv, envp, relay);
    }
    int errnum = errno;
    close(go[0]);
    close(failed[1]);
    spawn->go_fd = go[1];
    spawn->failed_fd = failed[0];
    if (spawn->pid > 0)
        return 0;
    close(go[1]);
    close(failed[0]);
    return fm_error_set_errno(err, FM_SYSTEM, errnum, "no process can be started");
}

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

int fm_spawn_go(struct fm_spawn *spawn)
{
    int errnum = 0;
    ssize_t got;
    do
        got = write(spawn->go_fd, "g", 1);
    while (got < 0 && errno == EINTR);
    if (got != 1)
        errnum = got < 0 ? errno : EIO;
    close(spawn->go_fd); /* a child that did not get the word ends now */
    if (errnum) {
        close(spawn->failed_fd);
        reap(spawn->pid);
        return errnum;
    }
    do
        got = read(spawn->failed_fd, &errnum, sizeof errnum);
    while (got < 0 && errno == EINTR);
    close(spawn->failed_fd);
    if (got != (ssize_t)sizeof errnum)
        return 0; /* end of file: exec closed the pipe */
    reap(spawn->pid);
    return errnum;
}

void fm_spawn_cancel(struct fm_spawn *spawn)
{
    close(spawn->go_fd);
    close(spawn->failed_fd);
    reap(spawn->pid);
}
