/*
 * What programs do to malloc that a profiler must live with; a library for memory_hostile.py, and with
 * -DPROGRAM a program of its own that is linked statically. Tests compile it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void churn(int count)
{
    for (int i = 0; i < count; i++) {
        char *block = malloc(50 + (size_t)(i % 700));
        memset(block, 1, 50);
        free(realloc(block, 900));
    }
}

/* ---- children ---- */

static int status_of(pid_t pid)
{
    int status;
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

/* A child in the memory of its parent, which allocates there although it should not. */
int by_vfork(void)
{
    pid_t pid = vfork();
    if (pid == 0) {
        free(malloc(3000));
        execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
        _exit(1);
    }
    return status_of(pid);
}

int by_vfork_without_exec(void)
{
    pid_t pid = vfork();
    if (pid == 0)
        _exit(9);
    return status_of(pid);
}

/* Past pthread_atfork: nobody is told. */
int by_system_call(int count)
{
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        churn(count);
        _exit(count % 100);
    }
    return status_of(pid);
}

/* ---- threads ---- */

static volatile int over;

static void *allocate_until_over(void *unused)
{
    (void)unused;
    while (!over)
        churn(100);
    return NULL;
}

/* Fork again and again while other threads are in malloc. How many children ended as they should. */
int fork_among_threads(int children)
{
    pthread_t threads[4];
    int good = 0;
    over = 0;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, allocate_until_over, NULL);
    for (int i = 0; i < children; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            churn(300);
            _exit(3);
        }
        good += WEXITSTATUS(status_of(pid)) == 3;
    }
    over = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return good;
}

static pthread_key_t key;

/* Runs when the thread is nearly gone, and asks to be run again. */
static void end_of_thread(void *value)
{
    churn(20);
    int *left = value;
    if (--*left)
        pthread_setspecific(key, left);
    else
        free(left);
}

static void *with_destructor(void *unused)
{
    (void)unused;
    int *left = malloc(sizeof *left);
    *left = 3;
    pthread_setspecific(key, left);
    churn(20);
    return malloc(77);
}

int threads_that_end(int count)
{
    int ended = 0;
    pthread_key_create(&key, end_of_thread);
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        void *last;
        pthread_create(&thread, NULL, with_destructor, NULL);
        pthread_join(thread, &last);
        free(last);
        ended++;
    }
    pthread_key_delete(key);
    return ended;
}

/* ---- signals ---- */

static volatile sig_atomic_t handled;

static void map_and_unmap(int number)
{
    (void)number;
    void *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *(char *)p = 1;
    munmap(p, 65536);
    handled++;
}

/* A handler, on a small stack of its own, in the middle of whatever malloc does. */
int signals_among_allocations(int count)
{
    static char stack[16384];
    stack_t small = { .ss_sp = stack, .ss_size = sizeof stack };
    struct sigaction action = { .sa_handler = map_and_unmap, .sa_flags = SA_ONSTACK | SA_RESTART };
    struct itimerval timer = { { 0, 300 }, { 0, 300 } }, none = { { 0, 0 }, { 0, 0 } };
    sigaltstack(&small, NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    while (handled < count)
        churn(50);
    setitimer(ITIMER_REAL, &none, NULL);
    return handled >= count;
}

/* ---- mistakes ---- */

void free_twice(void)
{
    void *volatile block = malloc(100);
    free(block);
    free(block);
}

void free_what_was_never_given(void)
{
    static _Alignas(16) char block[64];
    free((char *volatile)block + 16);
}

/* ---- blocks that pass others by ---- */

void *make(size_t bytes)
{
    return memset(malloc(bytes), 1, bytes);
}

void end(void *block)
{
    free(block);
}

/* ---- another user of Python's allocators ---- */

struct allocator {
    void *ctx;
    void *(*malloc)(void *ctx, size_t bytes);
    void *(*calloc)(void *ctx, size_t count, size_t bytes);
    void *(*realloc)(void *ctx, void *block, size_t bytes);
    void (*free)(void *ctx, void *block);
};
static struct allocator behind;
static long asked;

static void *count_malloc(void *ctx, size_t bytes)
{
    asked++;
    return behind.malloc(ctx, bytes);
}

void wrap_allocator(int domain)
{
    void (*get)(int, struct allocator *) =
        (void (*)(int, struct allocator *))dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    void (*set)(int, struct allocator *) =
        (void (*)(int, struct allocator *))dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    get(domain, &behind);
    struct allocator ours = behind;
    ours.malloc = count_malloc;
    set(domain, &ours);
}

long unwrap_allocator(int domain)
{
    void (*set)(int, struct allocator *) =
        (void (*)(int, struct allocator *))dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    set(domain, &behind);
    return asked;
}

/* ---- the end ---- */

static void at_end(void)
{
    churn(100);
    ssize_t rc = write(1, "the end of C\n", 13);
    (void)rc;
}

void allocate_at_exit(void)
{
    atexit(at_end);
}

#ifdef PROGRAM
int main(void)
{
    churn(1000);
    puts("static");
    return by_vfork() == 7 << 8 ? 4 : 1;
}
#endif
