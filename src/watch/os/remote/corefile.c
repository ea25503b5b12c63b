/* Memory of a core file; see corefile.h. */
#include "watch/os/remote/corefile.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "watch/os/remote/corefile_notes.h"

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_NONE
#endif

enum { MAX_SEGMENTS = 1 << 20, MAX_NOTES_BYTES = 64 << 20, CHECKED_BYTES = 1024 };

struct segment {
    fm_addr start, end;
    uint64_t offset, file_bytes; /* what the core holds of it: its first file_bytes bytes */
    bool readable, writable, executable;
};

/* A file that was mapped, opened when it is first needed. */
struct mapped {
    char *path;
    enum { NOT_TRIED, OPEN, REFUSED } state;
    int fd;
};

struct fm_core {
    int fd;
    uint64_t bytes; /* of the file */
    time_t written_s;
    bool cut;
    FM_VEC(struct segment) segments; /* ascending */
    FM_VEC(struct mapped) files;
    FM_VEC(uint32_t) file_of; /* per mapping of `maps`; UINT32_MAX: none */
    struct fm_maps maps;
    struct fm_core_notes notes;
    char *exe; /* given by the user, or NULL */
    char exe_path[PATH_MAX];
};

/* ---- reading ---- */

static int pread_all(int fd, void *into, size_t len, uint64_t offset)
{
    while (len) {
        ssize_t got = pread(fd, into, len, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EFAULT;
        into = (char *)into + got;
        len -= (size_t)got;
        offset += (uint64_t)got;
    }
    return 0;
}

static const struct segment *segment_at(const struct fm_core *core, fm_addr at)
{
    size_t low = 0, high = core->segments.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (core->segments.data[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < core->segments.len && core->segments.data[low].start <= at
               ? &core->segments.data[low]
               : NULL;
}

/* Read from the core alone; how much of `len` could be taken in one piece, 0 if nothing. */
static size_t read_dumped(const struct fm_core *core, fm_addr at, void *into, size_t len)
{
    const struct segment *s = segment_at(core, at);
    uint64_t inside = s ? at - s->start : 0;
    if (!s || inside >= s->file_bytes)
        return 0;
    if (len > s->file_bytes - inside)
        len = s->file_bytes - inside;
    return pread_all(core->fd, into, len, s->offset + inside) == 0 ? len : 0;
}

/* Bytes of a mapping against those of the file, at a few places; −1 if the core holds none of
 * them. A debugger that wrote the core may have left a breakpoint in one place. */
static int same_bytes(const struct fm_core *core, const struct fm_mapping *m, int fd)
{
    enum { PLACES = 16, BYTES = 256 };
    unsigned char here[BYTES], there[BYTES];
    int compared = 0, same = 0;
    for (int i = 0; i < PLACES; i++) {
        uint64_t inside = (m->end - m->start) / PLACES * (unsigned)i & ~(uint64_t)(BYTES - 1);
        size_t n = read_dumped(core, m->start + inside, here, sizeof here);
        if (!n)
            continue;
        compared++;
        same += pread_all(fd, there, n, m->offset + inside) == 0 && memcmp(here, there, n) == 0;
    }
    return compared ? same >= compared - 1 && same > 0 : -1;
}

/* How much of `bytes` the header and the program headers of an ELF file take. */
static size_t header_bytes(const unsigned char *bytes, size_t len)
{
    Elf64_Ehdr head;
    if (len < sizeof head)
        return 0;
    memcpy(&head, bytes, sizeof head);
    size_t all = sizeof head;
    if (head.e_phoff == sizeof head)
        all += (size_t)head.e_phnum * sizeof(Elf64_Phdr);
    return all < len ? all : len;
}

/* Is the open file the one that was mapped? By its first bytes, which kernels put into cores, or
 * by its code. A core with neither was written by a debugger on this machine, or nothing is known:
 * then the file must not have changed since. */
static bool is_the_file(const struct fm_core *core, size_t file, int fd, const struct stat *st)
{
    unsigned char here[CHECKED_BYTES], there[CHECKED_BYTES];
    int by_code = -1;
    for (size_t i = 0; i < core->maps.list.len; i++) {
        const struct fm_mapping *m = &core->maps.list.data[i];
        if (core->file_of.data[i] != file)
            continue;
        size_t n = m->offset == 0 ? read_dumped(core, m->start, here, sizeof here) : 0;
        if (n && m->writable) /* only the headers are surely as they were */
            n = header_bytes(here, n);
        if (n)
            return pread_all(fd, there, n, 0) == 0 && memcmp(here, there, n) == 0;
        if (m->executable && !m->writable && by_code < 0)
            by_code = same_bytes(core, m, fd);
    }
    return by_code >= 0 ? by_code : st->st_ctime < core->written_s;
}

static int file_of_mapping(struct fm_core *core, size_t mapping)
{
    uint32_t index = core->file_of.data[mapping];
    struct stat st;
    if (index == UINT32_MAX)
        return -1;
    struct mapped *file = &core->files.data[index];
    if (file->state == NOT_TRIED) {
        file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        bool good = file->fd >= 0 && fstat(file->fd, &st) == 0 && S_ISREG(st.st_mode) &&
                    is_the_file(core, index, file->fd, &st);
        if (!good && file->fd >= 0)
            close(file->fd);
        file->state = good ? OPEN : REFUSED;
    }
    return file->state == OPEN ? file->fd : -1;
}

static size_t read_mapped(struct fm_core *core, fm_addr at, void *into, size_t len)
{
    const struct fm_mapping *m = fm_maps_at(&core->maps, at);
    if (!m || m->writable)
        return 0;
    int fd = file_of_mapping(core, (size_t)(m - core->maps.list.data));
    if (fd < 0)
        return 0;
    if (len > m->end - at)
        len = m->end - at;
    return pread_all(fd, into, len, m->offset + (at - m->start)) == 0 ? len : 0;
}

static int read_core(const struct fm_remote *remote, const struct fm_span *spans, int n)
{
    struct fm_core *core = remote->data;
    for (int i = 0; i < n; i++) {
        size_t done = 0;
        while (done < spans[i].len) {
            fm_addr at = spans[i].at + done;
            char *into = (char *)spans[i].into + done;
            size_t got = read_dumped(core, at, into, spans[i].len - done);
            if (!got)
                got = read_mapped(core, at, into, spans[i].len - done);
            if (!got)
                return i ? i : -EFAULT;
            done += got;
        }
    }
    return n;
}

static const struct fm_remote_source core_source = { read_core };

void fm_core_remote(struct fm_core *core, struct fm_remote *remote)
{
    *remote = (struct fm_remote){ &core_source, 0, core };
}

const struct fm_maps *fm_core_maps(const struct fm_remote *remote)
{
    return remote->source == &core_source ? &((const struct fm_core *)remote->data)->maps : NULL;
}

/* ---- opening ---- */

static int read_header(struct fm_core *core, Elf64_Ehdr *head, uint64_t *ret_segments,
                       struct fm_error *err)
{
    if (core->bytes < sizeof *head || pread_all(core->fd, head, sizeof *head, 0) < 0 ||
        memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
        return fm_error_set(err, FM_NOT_RECORDING, "this is not a core file");
    if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_ident[EI_DATA] != ELFDATA2LSB ||
        head->e_machine != OWN_MACHINE)
        return fm_error_set(err, FM_UNSUPPORTED,
                            "it is from another kind of processor than Fathom "
                            "runs on here");
    if (head->e_type != ET_CORE)
        return fm_error_set(err, FM_NOT_RECORDING, "this is a program, not a core file");
    *ret_segments = head->e_phnum;
    if (head->e_phnum == PN_XNUM) { /* more than fit: the number stands in the first section */
        Elf64_Shdr section;
        if (pread_all(core->fd, &section, sizeof section, head->e_shoff) < 0)
            return fm_error_set(err, FM_DAMAGED, "the core file is cut off in its headers");
        *ret_segments = section.sh_info;
    }
    if (head->e_phentsize != sizeof(Elf64_Phdr) || *ret_segments > MAX_SEGMENTS)
        return fm_error_set(err, FM_DAMAGED, "the headers of the core file make no sense");
    return 0;
}

static void add_segment(struct fm_core *core, const Elf64_Phdr *p)
{
    struct segment s = { p->p_vaddr,        p->p_vaddr + p->p_memsz, p->p_offset,      p->p_filesz,
                         p->p_flags & PF_R, p->p_flags & PF_W,       p->p_flags & PF_X };
    if (s.end <= s.start)
        return;
    if (s.file_bytes > p->p_memsz)
        s.file_bytes = p->p_memsz;
    if (s.offset > core->bytes || s.file_bytes > core->bytes - s.offset) {
        core->cut = true;
        s.file_bytes = s.offset < core->bytes ? core->bytes - s.offset : 0;
    }
    fm_vec_push(&core->segments, s);
}

static int read_notes(struct fm_core *core, const Elf64_Phdr *p, struct fm_error *err)
{
    if (p->p_filesz > MAX_NOTES_BYTES || p->p_offset > core->bytes ||
        p->p_filesz > core->bytes - p->p_offset)
        return fm_error_set(err, FM_DAMAGED, "the core file is cut off before its memory begins");
    fm_autofree char *bytes = fm_malloc(p->p_filesz + 1);
    if (pread_all(core->fd, bytes, p->p_filesz, p->p_offset) < 0)
        return fm_error_set(err, FM_CANNOT_READ, "the core file cannot be read");
    fm_core_notes_parse(&core->notes, bytes, p->p_filesz);
    return 0;
}

static int read_segments(struct fm_core *core, const Elf64_Ehdr *head, uint64_t n,
                         struct fm_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        Elf64_Phdr p;
        if (pread_all(core->fd, &p, sizeof p, head->e_phoff + i * sizeof p) < 0)
            return fm_error_set(err, FM_DAMAGED, "the core file is cut off in its headers");
        if (p.p_type == PT_LOAD)
            add_segment(core, &p);
        else if (p.p_type == PT_NOTE && read_notes(core, &p, err) < 0)
            return err->status;
    }
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct segment *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* In order, without overlaps: what overlaps its forerunner is left out. */
static void sort_segments(struct fm_core *core)
{
    size_t kept = 0;
    if (core->segments.len)
        qsort(core->segments.data, core->segments.len, sizeof *core->segments.data, by_start);
    for (size_t i = 0; i < core->segments.len; i++) {
        if (kept && core->segments.data[i].start < core->segments.data[kept - 1].end)
            continue;
        core->segments.data[kept++] = core->segments.data[i];
    }
    core->segments.len = kept;
}

static uint32_t file_number(struct fm_core *core, const char *path)
{
    for (size_t i = core->files.len; i-- > 0;) {
        if (strcmp(core->files.data[i].path, path) == 0)
            return (uint32_t)i;
    }
    struct mapped file = { .path = fm_strdup(path), .fd = -1 };
    fm_vec_push(&core->files, file);
    return (uint32_t)core->files.len - 1;
}

static void add_mapping(struct fm_core *core, const struct segment *s, fm_addr start, fm_addr end,
                        uint64_t offset, const char *path)
{
    struct fm_mapping m = { .start = start, .end = end, .offset = offset, .path = path };
    /* A mapping of a file without a segment was left out whole: that is not done to data. */
    m.readable = s ? s->readable : true;
    m.writable = s ? s->writable : false;
    m.executable = s ? s->executable : true;
    m.inode = *path ? file_number(core, path) + 1 : 0;
    fm_maps_add(&core->maps, &m);
    fm_vec_push(&core->file_of, *path ? (uint32_t)m.inode - 1 : UINT32_MAX);
}

/* Both lists as one map: files from the notes, and the rest of the segments without a name. */
static void build_maps(struct fm_core *core)
{
    size_t s = 0;
    fm_addr end = 0;
    for (size_t i = 0; i <= core->notes.files.len; i++) {
        const struct fm_core_file *f =
            i < core->notes.files.len ? &core->notes.files.data[i] : NULL;
        for (; s < core->segments.len && (!f || core->segments.data[s].end <= f->start); s++) {
            const struct segment *seg = &core->segments.data[s];
            if (seg->start >= end)
                add_mapping(core, seg, seg->start, seg->end, 0, "");
        }
        if (!f || f->start < end || f->end <= f->start)
            continue;
        add_mapping(core, segment_at(core, f->start), f->start, f->end, f->offset, f->path);
        end = f->end;
    }
}

/* The executable is what was mapped at the entry point of the program. */
static int name_exe(struct fm_core *core, struct fm_error *err)
{
    const struct fm_mapping *m = fm_maps_at(&core->maps, core->notes.entry);
    if (m && m->path[0] == '/')
        snprintf(core->exe_path, sizeof core->exe_path, "%s", m->path);
    if (!core->exe)
        return 0;
    if (!core->exe_path[0])
        return fm_error_set(err, FM_UNSUPPORTED, "the core file does not say which program it was");
    uint32_t index = file_number(core, core->exe_path);
    free(core->files.data[index].path);
    core->files.data[index].path = fm_strdup(core->exe);
    size_t mapping = (size_t)(m - core->maps.list.data);
    if (file_of_mapping(core, mapping) < 0)
        return fm_error_set(err, FM_BAD_QUERY,
                            "%s is not the program of this core file, which was %s", core->exe,
                            core->exe_path);
    return 0;
}

static int load(struct fm_core *core, struct fm_error *err)
{
    Elf64_Ehdr head;
    uint64_t n = 0;
    if (read_header(core, &head, &n, err) < 0 || read_segments(core, &head, n, err) < 0)
        return err->status;
    if (!core->segments.len || !core->notes.threads.len)
        return fm_error_set(err, FM_DAMAGED, "the core file has no memory or no threads in it");
    sort_segments(core);
    build_maps(core);
    return name_exe(core, err);
}

struct fm_core *fm_core_open(const char *path, const char *exe, struct fm_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        fm_error_set_errno(err, errno == ENOENT ? FM_NOT_FOUND : FM_CANNOT_READ, errno, "%s", path);
        return NULL;
    }
    struct fm_core *core = fm_calloc(1, sizeof *core);
    core->fd = fd;
    core->exe = exe ? fm_strdup(exe) : NULL;
    int status = 0;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        status = fm_error_set(err, FM_NOT_RECORDING, "this is not a file");
    core->bytes = status ? 0 : (uint64_t)st.st_size;
    core->written_s = status ? 0 : st.st_mtime;
    if (status || load(core, err) < 0) {
        fm_error_context(err, "%s", path);
        fm_core_free(core);
        return NULL;
    }
    return core;
}

void fm_core_free(struct fm_core *core)
{
    if (!core)
        return;
    for (size_t i = 0; i < core->files.len; i++) {
        if (core->files.data[i].state == OPEN)
            close(core->files.data[i].fd);
        free(core->files.data[i].path);
    }
    fm_vec_release(&core->files);
    fm_vec_release(&core->file_of);
    fm_vec_release(&core->segments);
    fm_maps_release(&core->maps);
    fm_core_notes_release(&core->notes);
    free(core->exe);
    close(core->fd);
    free(core);
}

const struct fm_core_thread *fm_core_threads(const struct fm_core *core, size_t *ret_n)
{
    *ret_n = core->notes.threads.len;
    return core->notes.threads.data;
}

const char *fm_core_exe(const struct fm_core *core)
{
    return core->exe_path;
}

const char *fm_core_command(const struct fm_core *core)
{
    return core->notes.command;
}

pid_t fm_core_pid(const struct fm_core *core)
{
    return core->notes.pid;
}

bool fm_core_is_cut(const struct fm_core *core)
{
    return core->cut;
}
