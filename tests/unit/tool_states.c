/*
 * tool_states PID [GIL BYTES]: a line for each thread of a process, "TID STATE TEXT" with tabs
 * between: what fm_syscall_state() and its companions say of it. "running" for one that is not
 * blocked. For the behaviour tests, which compare it with what their programs are known to do.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "watch/sampler/syscalls.h"

static void show(pid_t pid, const char *tid, fm_addr gil, uint32_t gil_bytes)
{
    char path[300], line[512];
    struct fm_syscall call;
    struct fm_remote remote;
    snprintf(path, sizeof path, "/proc/%d/task/%s/syscall", (int)pid, tid);
    int fd = open(path, O_RDONLY);
    ssize_t len = fd < 0 ? -1 : read(fd, line, sizeof line);
    if (fd >= 0)
        close(fd);
    if (len < 0)
        return; /* the thread has ended */
    if (!fm_syscall_parse(&call, line, (size_t)len)) {
        printf("%s\tsenseless\t%.*s", tid, (int)len, line);
        return;
    }
    fm_remote_live(&remote, pid);
    struct fm_fd_kinds *kinds = fm_fd_kinds_new(pid);
    fm_autobuffer text = FM_BUFFER_INIT;
    if (call.running)
        printf("%s\trunning\t\n", tid);
    else {
        fm_syscall_describe(&call, &remote, kinds, &text);
        printf("%s\t%s\t%s\n", tid,
               fm_state_name(fm_syscall_state(&call, &remote, gil, gil_bytes, kinds)),
               fm_buffer_text(&text));
    }
    fm_fd_kinds_free(kinds);
}

int main(int argc, char **argv)
{
    char path[64];
    pid_t pid = argc > 1 ? atoi(argv[1]) : 0;
    fm_addr gil = argc > 3 ? strtoull(argv[2], NULL, 0) : 0;
    uint32_t gil_bytes = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = pid > 0 ? opendir(path) : NULL;
    if (!tasks) {
        fprintf(stderr, "tool_states: no process %d\n", (int)pid);
        return 1;
    }
    for (struct dirent *entry; (entry = readdir(tasks));)
        if (entry->d_name[0] != '.')
            show(pid, entry->d_name, gil, gil_bytes);
    closedir(tasks);
    return 0;
}
