/*
 * The class of every system call a thread may block in: which argument tells what it waits for.
 * Data for syscalls.c alone.
 */
#ifndef FM_SAMPLER_SYSCALL_CLASSES_H
#define FM_SAMPLER_SYSCALL_CLASSES_H

#include <stdint.h>
#include <sys/syscall.h>

/* Newer than some headers; these numbers are the same on every architecture. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif

enum call_class {
    CLASS_OTHER,
    CLASS_FUTEX,   /* at args[0] */
    CLASS_FUTEXES, /* an array at args[0] */
    CLASS_LOCK,    /* a lock on the file args[0] */
    CLASS_FCNTL,   /* perhaps a lock on it */
    CLASS_SEMOP,   /* System V semaphores */
    CLASS_FD,      /* depends on what descriptor args[0] is */
    CLASS_NETWORK, /* args[0] is a socket */
    CLASS_PATH,    /* a path at args[0] */
    CLASS_PATH_AT, /* a path at args[1], relative to args[0] */
    CLASS_DISK,    /* without a descriptor */
    CLASS_POLL,    /* args[1] struct pollfd at args[0] */
    CLASS_SELECT,  /* descriptors below args[0], sets at args[1…3] */
    CLASS_EPOLL,   /* args[0], milliseconds in args[3] */
    CLASS_EPOLL2,  /* args[0], time at args[3] */
    CLASS_SLEEP,
    CLASS_CHILD,  /* process args[0] */
    CLASS_WAITID, /* args[0] says what args[1] is */
    CLASS_MAP,    /* changes the map of the memory */
};

static const uint8_t classes[512] = {
    [SYS_futex] = CLASS_FUTEX,
    [SYS_futex_wait] = CLASS_FUTEX,
    [SYS_futex_waitv] = CLASS_FUTEXES,
    [SYS_flock] = CLASS_LOCK,
    [SYS_fcntl] = CLASS_FCNTL,
    [SYS_semop] = CLASS_SEMOP,
    [SYS_semtimedop] = CLASS_SEMOP,

    [SYS_read] = CLASS_FD,
    [SYS_write] = CLASS_FD,
    [SYS_readv] = CLASS_FD,
    [SYS_writev] = CLASS_FD,
    [SYS_pread64] = CLASS_FD,
    [SYS_pwrite64] = CLASS_FD,
    [SYS_preadv] = CLASS_FD,
    [SYS_pwritev] = CLASS_FD,
    [SYS_preadv2] = CLASS_FD,
    [SYS_pwritev2] = CLASS_FD,
    [SYS_sendfile] = CLASS_FD,
    [SYS_splice] = CLASS_FD,
    [SYS_tee] = CLASS_FD,
    [SYS_vmsplice] = CLASS_FD,
    [SYS_copy_file_range] = CLASS_FD,
    [SYS_fsync] = CLASS_FD,
    [SYS_fdatasync] = CLASS_FD,
    [SYS_sync_file_range] = CLASS_FD,
    [SYS_syncfs] = CLASS_FD,
    [SYS_ftruncate] = CLASS_FD,
    [SYS_fallocate] = CLASS_FD,
    [SYS_fadvise64] = CLASS_FD,
    [SYS_readahead] = CLASS_FD,
    [SYS_getdents64] = CLASS_FD,
    [SYS_lseek] = CLASS_FD,
    [SYS_fstat] = CLASS_FD,
    [SYS_fstatfs] = CLASS_FD,
    [SYS_fchmod] = CLASS_FD,
    [SYS_fchown] = CLASS_FD,
    [SYS_fchdir] = CLASS_FD,
    [SYS_ioctl] = CLASS_FD,
    [SYS_close] = CLASS_FD, /* may write out, or linger */

    [SYS_connect] = CLASS_NETWORK,
    [SYS_accept] = CLASS_NETWORK,
    [SYS_accept4] = CLASS_NETWORK,
    [SYS_recvfrom] = CLASS_NETWORK,
    [SYS_recvmsg] = CLASS_NETWORK,
    [SYS_recvmmsg] = CLASS_NETWORK,
    [SYS_sendto] = CLASS_NETWORK,
    [SYS_sendmsg] = CLASS_NETWORK,
    [SYS_sendmmsg] = CLASS_NETWORK,
    [SYS_shutdown] = CLASS_NETWORK,

    [SYS_openat] = CLASS_PATH_AT,
    [SYS_openat2] = CLASS_PATH_AT,
    [SYS_newfstatat] = CLASS_PATH_AT,
    [SYS_statx] = CLASS_PATH_AT,
    [SYS_faccessat] = CLASS_PATH_AT,
    [SYS_faccessat2] = CLASS_PATH_AT,
    [SYS_readlinkat] = CLASS_PATH_AT,
    [SYS_unlinkat] = CLASS_PATH_AT,
#ifdef SYS_renameat
    [SYS_renameat] = CLASS_PATH_AT,
#endif
    [SYS_renameat2] = CLASS_PATH_AT,
    [SYS_mkdirat] = CLASS_PATH_AT,
    [SYS_mknodat] = CLASS_PATH_AT,
    [SYS_linkat] = CLASS_PATH_AT,
    [SYS_fchmodat] = CLASS_PATH_AT,
    [SYS_fchownat] = CLASS_PATH_AT,
    [SYS_utimensat] = CLASS_PATH_AT,
    [SYS_execveat] = CLASS_PATH_AT,
    [SYS_execve] = CLASS_PATH,
    [SYS_truncate] = CLASS_PATH,
    [SYS_statfs] = CLASS_PATH,
    [SYS_chdir] = CLASS_PATH,
    [SYS_umount2] = CLASS_PATH,
    [SYS_setxattr] = CLASS_PATH,
    [SYS_getxattr] = CLASS_PATH,
    [SYS_listxattr] = CLASS_PATH,

    [SYS_mmap] = CLASS_MAP,
    [SYS_munmap] = CLASS_MAP,
    [SYS_mremap] = CLASS_MAP,
    [SYS_mprotect] = CLASS_MAP,
    [SYS_madvise] = CLASS_MAP,
    [SYS_brk] = CLASS_MAP,

    [SYS_sync] = CLASS_DISK,
    [SYS_msync] = CLASS_DISK,
    [SYS_swapoff] = CLASS_DISK,
    [SYS_io_submit] = CLASS_DISK,
    [SYS_io_getevents] = CLASS_DISK,
    [SYS_io_pgetevents] = CLASS_DISK,
    [SYS_io_uring_enter] = CLASS_DISK,

    [SYS_ppoll] = CLASS_POLL,
    [SYS_pselect6] = CLASS_SELECT,
    [SYS_epoll_pwait] = CLASS_EPOLL,
    [SYS_epoll_pwait2] = CLASS_EPOLL2,

    [SYS_nanosleep] = CLASS_SLEEP,
    [SYS_clock_nanosleep] = CLASS_SLEEP,
    [SYS_rt_sigsuspend] = CLASS_SLEEP,
    [SYS_wait4] = CLASS_CHILD,
    [SYS_waitid] = CLASS_WAITID,

#ifdef __x86_64__ /* calls that later architectures do not have */
    [SYS_open] = CLASS_PATH,
    [SYS_creat] = CLASS_PATH,
    [SYS_stat] = CLASS_PATH,
    [SYS_lstat] = CLASS_PATH,
    [SYS_access] = CLASS_PATH,
    [SYS_readlink] = CLASS_PATH,
    [SYS_unlink] = CLASS_PATH,
    [SYS_rename] = CLASS_PATH,
    [SYS_mkdir] = CLASS_PATH,
    [SYS_rmdir] = CLASS_PATH,
    [SYS_link] = CLASS_PATH,
    [SYS_symlink] = CLASS_PATH,
    [SYS_chmod] = CLASS_PATH,
    [SYS_chown] = CLASS_PATH,
    [SYS_getdents] = CLASS_FD,
    [SYS_poll] = CLASS_POLL,
    [SYS_select] = CLASS_SELECT,
    [SYS_epoll_wait] = CLASS_EPOLL,
    [SYS_pause] = CLASS_SLEEP,
#endif
};

#endif
