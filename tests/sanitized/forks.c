/* A child that ends at once, made by a thread that does not have the GIL. */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

int fork_and_wait(void)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}
