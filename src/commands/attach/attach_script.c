/* Scripts for a running process; see attach_script.h. */
#include "commands/attach/attach_script.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "watch/os/path.h"

#define PIPE_NAME  "answer"
#define TOKEN_NAME "token"
#define SLICE_MS   50
#define OTHER_NS   100000000u /* the main thread has that long for itself */
#define LAST_NS    200000000u /* for whoever has just seen the mark when it is taken back */
#define ANSWER_MAX 512

/*
 * Behind the begin nothing is allocated: a constant is written, and small numbers are there
 * already. KeyboardInterrupt is the program's: it is raised again when the script is over.
 */
static const char common_head[] =
    "import posix, sys, _imp, _thread\n"
    "def load():\n"
    "    path = (agents + b'/_agent').decode(sys.getfilesystemencoding(), 'surrogateescape')\n"
    "    path += _imp.extension_suffixes()[0]\n"
    "    agent = _imp.create_dynamic(type(sys.__spec__)('_agent', None, origin=path))\n"
    "    _imp.exec_dynamic(agent)\n"
    "    return agent\n"
    "def answer(error):\n"
    "    text = '%s: %s' % (type(error).__name__, error)\n"
    "    return text.encode('utf-8', 'replace')[:500].replace(b'\\n', b' ')\n";

static const char begin_body[] =
    "def run():\n"
    "    try:\n"
    "        posix.unlink(token)\n"
    "        fd = posix.open(pipe, posix.O_WRONLY | posix.O_NONBLOCK | posix.O_CLOEXEC)\n"
    "    except OSError:\n"
    "        return\n"
    "    try:\n"
    "        posix.write(fd, b'+' if getattr(load(), begin)(argument) else b'=')\n"
    "    except KeyboardInterrupt:\n"
    "        _thread.interrupt_main()\n"
    "    except BaseException as error:\n"
    "        posix.write(fd, answer(error))\n"
    "    posix.close(fd)\n"
    "run()\n";

/* Nobody listens any more: then the folder is ours to remove. */
static const char end_body[] =
    "def run():\n"
    "    try:\n"
    "        posix.unlink(token)\n"
    "    except OSError:\n"
    "        return\n"
    "    try:\n"
    "        getattr(load(), end)()\n"
    "    except BaseException:\n"
    "        pass\n"
    "    try:\n"
    "        fd = posix.open(pipe, posix.O_WRONLY | posix.O_NONBLOCK | posix.O_CLOEXEC)\n"
    "        posix.write(fd, b'+')\n"
    "        posix.close(fd)\n"
    "    except OSError:\n"
    "        try:\n"
    "            for name in posix.listdir(folder):\n"
    "                posix.unlink(folder + b'/' + name)\n"
    "            posix.rmdir(folder)\n"
    "        except OSError:\n"
    "            pass\n"
    "run()\n";

/* ---- files ---- */

static void add_name(struct fm_buffer *text, const char *name, const char *folder, const char *file)
{
    fm_autofree char *path = file ? fm_path_join(folder, file) : fm_strdup(folder);
    fm_buffer_addf(text, "%s = b'", name);
    for (const char *c = path; *c; c++)
        fm_buffer_addf(text, isalnum((unsigned char)*c) || *c == '/' ? "%c" : "\\x%02x",
                       (unsigned char)*c);
    fm_buffer_add_text(text, "'\n");
}

static int make_file(const char *path, const char *text)
{
    size_t len = strlen(text);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    bool written = write(fd, text, len) == (ssize_t)len;
    int saved = errno;
    close(fd);
    errno = saved;
    return written ? 0 : -1;
}

static int make_pipe(const struct fm_attach_script *s)
{
    fm_autofree char *path = fm_path_join(s->folder, PIPE_NAME);
    if (mkfifo(path, 0600) < 0)
        return -1;
    return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
}

static void remove_file(const struct fm_attach_script *s, const char *name)
{
    fm_autofree char *path = fm_path_join(s->folder, name);
    unlink(path);
}

/* Script, token and pipe; the pipe's end that answers come from, or −1. */
static int prepare(const struct fm_attach_script *s, const char *path, const char *body,
                   struct fm_error *err)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    fm_autofree char *token = fm_path_join(s->folder, TOKEN_NAME);
    add_name(&text, "folder", s->folder, NULL);
    add_name(&text, "agents", s->agents, NULL);
    add_name(&text, "pipe", s->folder, PIPE_NAME);
    add_name(&text, "token", s->folder, TOKEN_NAME);
    add_name(&text, "argument", s->argument, NULL);
    fm_buffer_addf(&text, "begin = '%s'\nend = '%s'\n", s->begin, s->end);
    fm_buffer_addf(&text, "%s%s", common_head, body);
    remove_file(s, PIPE_NAME);
    int fd = make_pipe(s);
    if (fd >= 0 && make_file(token, "") == 0 && make_file(path, fm_buffer_text(&text)) == 0)
        return fd;
    fm_error_set_errno(err, FM_CANNOT_WRITE, errno, "%s", s->folder);
    if (fd >= 0)
        close(fd);
    return -1;
}

/* ---- the answer ---- */

/* Wait for it: 1, 0 if it did not come by then, −1 with an error if it cannot come any more. */
static int await(const struct fm_attach_script *s, int fd, const char *path, uint64_t limit_ns,
                 char *answer, struct fm_error *err)
{
    uint64_t begin_ns = fm_clock_ns(), other_ns = begin_ns + OTHER_NS, now_ns;
    pid_t pid = s->call->remote->pid;
    while ((now_ns = fm_clock_ns()) < begin_ns + limit_ns) {
        struct pollfd fds[] = { { fd, POLLIN, 0 }, { s->stop_fd, POLLIN, 0 } };
        poll(fds, 2, SLICE_MS);
        ssize_t len = read(fd, answer, ANSWER_MAX - 1);
        if (len > 0) {
            answer[len] = '\0';
            return 1;
        }
        if (fds[1].revents)
            return 0;
        if (kill(pid, 0) < 0 && errno == ESRCH)
            return fm_error_set(err, FM_NOT_FOUND, "process %d ended before it answered", (int)pid);
        if (path && now_ns >= other_ns) {
            fm_remote_call_spare_other(s->call); /* it may have fallen asleep, too */
            fm_remote_call_post_other(s->call, path);
            other_ns = now_ns + OTHER_NS;
        }
    }
    return 0;
}

static int judge(const struct fm_attach_script *s, const char *answer, struct fm_error *err)
{
    int pid = (int)s->call->remote->pid;
    if (*answer == '+')
        return 0;
    if (*answer == '=')
        return fm_error_set(err, FM_UNSUPPORTED, "process %d is recorded already: %s", pid,
                            s->recorded);
    return fm_error_set(err, FM_UNSUPPORTED, "process %d could not begin: %s", pid, answer);
}

/* If a second thread has seen the mark, it is to find the script, though it does nothing. */
static void take_back(const struct fm_attach_script *s)
{
    if (fm_remote_call_take_back(s->call) > 1)
        usleep(LAST_NS / 1000);
}

int fm_attach_script_begin(const struct fm_attach_script *s, uint64_t limit_ns,
                           struct fm_error *err)
{
    char answer[ANSWER_MAX];
    fm_autofree char *path = fm_path_join(s->folder, "begin.py");
    int fd = prepare(s, path, begin_body, err);
    if (fd < 0)
        return err->status;
    int rc = fm_remote_call_post(s->call, path, err);
    int came = rc < 0 ? rc : await(s, fd, path, limit_ns, answer, err);
    if (came >= 0)
        take_back(s);
    if (came == 0) {
        struct fm_attach_script waiting = *s;
        waiting.stop_fd = -1;
        came = await(&waiting, fd, NULL, LAST_NS, answer, err);
    }
    close(fd);
    unlink(path); /* nothing but what belongs to a run stays in the folder, whoever finds it */
    remove_file(s, PIPE_NAME);
    remove_file(s, TOKEN_NAME);
    if (came == 1)
        return judge(s, answer, err);
    if (came == 0)
        fm_error_set(err, FM_NO_ANSWER,
                     "process %d did not answer in time: it runs no Python code now, but waits or "
                     "computes in C; --wait S waits longer",
                     (int)s->call->remote->pid);
    return err->status;
}

int fm_attach_script_end(const struct fm_attach_script *s, uint64_t limit_ns, struct fm_error *err)
{
    char answer[ANSWER_MAX];
    fm_autofree char *path = fm_path_join(s->folder, "end.py");
    int fd = prepare(s, path, end_body, err);
    if (fd < 0)
        return err->status;
    int rc = fm_remote_call_post(s->call, path, err);
    int came = rc < 0 ? rc : await(s, fd, path, limit_ns, answer, err);
    if (came == 1)
        take_back(s);
    else
        fm_remote_call_spare_other(s->call); /* the script stays for the main thread */
    close(fd);
    if (came == 0)
        fm_error_set(err, FM_NO_ANSWER,
                     "process %d runs no Python code now; it ends the recording by itself when it "
                     "does",
                     (int)s->call->remote->pid);
    return came == 1 ? 0 : err->status;
}
