/* Fuzzes the reader of core files: opening, its memory map, reading everywhere near its edges, and
 * the search for a Python in it. */
#include "fuzz.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <unistd.h>

#include "watch/cpython/runtime.h"
#include "watch/os/remote/corefile.h"

/* Read around both ends of every mapping; what is returned must be what was asked for, or an
 * error. */
static void read_edges(const struct fm_remote *remote)
{
    const struct fm_maps *maps = fm_core_maps(remote);
    char bytes[64];
    for (size_t i = 0; i < maps->list.len && i < 1000; i++) {
        const struct fm_mapping *m = &maps->list.data[i];
        if (m->start >= m->end)
            abort(); /* the map must make sense, whatever the core says */
        fm_remote_read(remote, m->start, bytes, sizeof bytes);
        fm_remote_read(remote, m->start - 8, bytes, sizeof bytes);
        fm_remote_read(remote, m->end - 8, bytes, sizeof bytes);
        fm_remote_read(remote, m->start + (m->end - m->start) / 2, bytes, sizeof bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct fm_error err = FM_ERROR_INIT, why = FM_ERROR_INIT;
    struct fm_remote remote;
    static struct fm_runtime runtime;
    int fd = memfd_create("core", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct fm_core *core = fm_core_open(path, NULL, &err);
    if (!core && !err.text[0])
        abort(); /* a refusal must say why */
    if (core) {
        size_t n;
        fm_core_threads(core, &n);
        fm_core_remote(core, &remote);
        read_edges(&remote);
        if (fm_runtime_find_in(&runtime, &remote, fm_core_maps(&remote), "", fm_core_exe(core),
                               &why) == 0 ||
            !why.text[0])
            abort(); /* there is no Python in these */
    }
    fm_core_free(core);
    close(fd);
    return 0;
}

static void add_note(struct fm_buffer *out, uint32_t type, const void *body, size_t len)
{
    Elf64_Nhdr head = { 5, (Elf64_Word)len, type };
    fm_buffer_add(out, &head, sizeof head);
    fm_buffer_add(out, "CORE\0\0\0", 8);
    fm_buffer_add(out, body, len);
    fm_buffer_add(out, "\0\0\0", -len & 3);
}

static void add_notes(struct fm_buffer *out)
{
    struct elf_prstatus status = { .pr_pid = 42, .pr_cursig = 6 };
    struct elf_prpsinfo info = { .pr_pid = 42, .pr_psargs = "python3 app.py" };
    Elf64_auxv_t aux[] = { { AT_ENTRY, { 0x401010 } }, { AT_NULL, { 0 } } };
    uint64_t files[] = { 2, 4096, 0x400000, 0x401000, 0, 0x401000, 0x402000, 1 };
    char file_note[sizeof files + 64];
    memcpy(file_note, files, sizeof files);
    size_t len = sizeof files;
    for (int i = 0; i < 2; i++) {
        memcpy(file_note + len, "/bin/sh", 8);
        len += 8;
    }
    add_note(out, NT_PRSTATUS, &status, sizeof status);
    status.pr_pid = 43;
    add_note(out, NT_PRSTATUS, &status, sizeof status);
    add_note(out, NT_PRPSINFO, &info, sizeof info);
    add_note(out, NT_AUXV, aux, sizeof aux);
    add_note(out, NT_FILE, file_note, len);
}

#if defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

/* One core: a file's first page, its code left out, a page of data. */
bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    fm_autobuffer notes = FM_BUFFER_INIT;
    fm_buffer_clear(out);
    if (n)
        return false;
    add_notes(&notes);
    size_t headers = sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Phdr), memory = headers + notes.len;
    Elf64_Ehdr head = { .e_type = ET_CORE,
                        .e_machine = MACHINE,
                        .e_version = 1,
                        .e_phoff = sizeof head,
                        .e_ehsize = sizeof head,
                        .e_phentsize = sizeof(Elf64_Phdr),
                        .e_phnum = 4 };
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    Elf64_Phdr segments[4] = {
        { .p_type = PT_NOTE, .p_offset = headers, .p_filesz = notes.len },
        { PT_LOAD, PF_R, memory, 0x400000, 0, 512, 0x1000, 1 },
        { PT_LOAD, PF_R | PF_X, memory + 512, 0x401000, 0, 0, 0x1000, 1 },
        { PT_LOAD, PF_R | PF_W, memory + 512, 0x600000, 0, 512, 0x1000, 1 },
    };
    fm_buffer_add(out, &head, sizeof head);
    fm_buffer_add(out, segments, sizeof segments);
    fm_buffer_add(out, notes.data, notes.len);
    for (int i = 0; i < 1024; i++)
        fm_buffer_add_char(out, (char)(i < 4 ? ELFMAG[i] : i * 7));
    return true;
}
