/* Notes of a core file; see corefile_notes.h. */
#include "watch/os/remote/corefile_notes.h"

#include <elf.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/user.h>

enum { MAX_THREADS = 65536, MAX_FILES = 1 << 20 };

/* A thread that was in a system call: on x86-64 the call's number is kept beside its result, which
 * for an interrupted call is one of the kernel's own "restart" numbers, or still the call's "not
 * implemented". */
static void read_registers(struct fm_core_thread *t, const elf_gregset_t *registers)
{
#if defined(__x86_64__)
    struct user_regs_struct r;
    memcpy(&r, registers, sizeof r < sizeof *registers ? sizeof r : sizeof *registers);
    long result = (long)r.rax;
    t->stack_pointer = r.rsp;
    t->program_counter = r.rip;
    t->in_syscall = (long)r.orig_rax >= 0 && (result == -38 || (result <= -512 && result >= -516));
    t->number = (long)r.orig_rax;
    uint64_t args[6] = { r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9 };
    memcpy(t->args, args, sizeof args);
#elif defined(__aarch64__)
    struct user_regs_struct r;
    memcpy(&r, registers, sizeof r < sizeof *registers ? sizeof r : sizeof *registers);
    t->stack_pointer = r.sp;
    t->program_counter = r.pc; /* the first argument is overwritten by the result: no system call */
#else
    (void)registers;
#endif
}

static void read_status(struct fm_core_notes *notes, const char *bytes, size_t len)
{
    struct elf_prstatus status;
    struct fm_core_thread t = { 0 };
    if (len < sizeof status || notes->threads.len == MAX_THREADS)
        return;
    memcpy(&status, bytes, sizeof status);
    t.tid = status.pr_pid;
    t.signal = status.pr_cursig;
    read_registers(&t, &status.pr_reg);
    fm_vec_push(&notes->threads, t);
}

static void read_info(struct fm_core_notes *notes, const char *bytes, size_t len)
{
    struct elf_prpsinfo info;
    if (len < sizeof info)
        return;
    memcpy(&info, bytes, sizeof info);
    notes->pid = info.pr_pid;
    memcpy(notes->command, info.pr_psargs, sizeof info.pr_psargs < 80 ? sizeof info.pr_psargs : 80);
    notes->command[80] = 0;
    for (size_t n = strlen(notes->command); n && notes->command[n - 1] == ' ';)
        notes->command[--n] = 0;
}

static void read_auxiliary(struct fm_core_notes *notes, const char *bytes, size_t len)
{
    Elf64_auxv_t entry;
    for (size_t at = 0; at + sizeof entry <= len; at += sizeof entry) {
        memcpy(&entry, bytes + at, sizeof entry);
        if (entry.a_type == AT_ENTRY)
            notes->entry = entry.a_un.a_val;
    }
}

/* The number of files, the size of a page, then start, end and offset (in pages) of each, then
 * their names. */
static void read_files(struct fm_core_notes *notes, const char *bytes, size_t len)
{
    uint64_t head[2], range[3];
    if (len < sizeof head)
        return;
    memcpy(head, bytes, sizeof head);
    if (head[0] > MAX_FILES || head[0] > (len - sizeof head) / sizeof range || !head[1] ||
        head[1] > 1 << 20)
        return;
    const char *name = bytes + sizeof head + head[0] * sizeof range, *end = bytes + len;
    fm_addr last = 0;
    for (uint64_t i = 0; i < head[0]; i++) {
        const char *stop = name < end ? memchr(name, 0, (size_t)(end - name)) : NULL;
        if (!stop)
            return;
        memcpy(range, bytes + sizeof head + i * sizeof range, sizeof range);
        if (range[0] >= last && range[1] > range[0] && range[2] < UINT64_MAX / head[1]) {
            struct fm_core_file f = { range[0], range[1], range[2] * head[1],
                                      fm_strndup(name, (size_t)(stop - name)) };
            fm_vec_push(&notes->files, f);
            last = range[1];
        }
        name = stop + 1;
    }
}

void fm_core_notes_parse(struct fm_core_notes *notes, const void *bytes, size_t len)
{
    const char *at = bytes;
    Elf64_Nhdr head;
    while (len >= sizeof head) {
        memcpy(&head, at, sizeof head);
        size_t name = ((size_t)head.n_namesz + 3) & ~(size_t)3;
        size_t desc = ((size_t)head.n_descsz + 3) & ~(size_t)3;
        at += sizeof head;
        len -= sizeof head;
        if (name > len || head.n_descsz > len - name)
            return;
        bool core = head.n_namesz == 5 && memcmp(at, "CORE", 5) == 0;
        const char *body = at + name;
        if (core && head.n_type == NT_PRSTATUS)
            read_status(notes, body, head.n_descsz);
        else if (core && head.n_type == NT_PRPSINFO)
            read_info(notes, body, head.n_descsz);
        else if (core && head.n_type == NT_AUXV)
            read_auxiliary(notes, body, head.n_descsz);
        else if (core && head.n_type == NT_FILE && !notes->files.len)
            read_files(notes, body, head.n_descsz);
        if (desc > len - name)
            return;
        at = body + desc;
        len -= name + desc;
    }
}

void fm_core_notes_release(struct fm_core_notes *notes)
{
    for (size_t i = 0; i < notes->files.len; i++)
        free(notes->files.data[i].path);
    fm_vec_release(&notes->files);
    fm_vec_release(&notes->threads);
}
