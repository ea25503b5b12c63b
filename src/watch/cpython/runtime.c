/*
 * Finding the interpreter inside a process; see runtime.h.
 *
 * The files mapped into the process are its modules; libpython and the executable are asked first,
 * then every other one, since an embedded Python may hide in any. Three ways, the cheap ones first:
 *
 *   1. the exported symbol _PyRuntime, looked up in the memory of the module: no file is needed, so
 *      containers, deleted files and changed roots need no care
 *   2. all symbols and the section .PyRuntime of the file, if the module looks like a Python
 *   3. the marks in the memory of such a module (marks.h): a stripped Python
 *
 * Whatever address comes out is confirmed by walking to a thread state and back. An executable that
 * has a Python of its own and loads a libpython all the same has two runtimes, one of them idle: so
 * an empty runtime does not end the search.
 */
#include "watch/cpython/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "watch/cpython/marks.h"
#include "watch/os/procfs.h"
#include "watch/os/remote/elf.h"
#include "watch/os/remote/image.h"
#include "watch/os/remote/maps.h"

#define MODULE_LIMIT     65536
#define CONFIRM_ATTEMPTS 5

enum rank { RANK_LIBPYTHON, RANK_EXECUTABLE, RANK_PYTHON_NAME, RANK_OTHER, RANK_COUNT };

struct module {
    const struct fm_mapping *first; /* the mapping of file offset 0 */
    enum rank rank;
    bool readable; /* `image` is filled */
    struct fm_image image;
    bool version_searched;
    uint32_t text_version; /* of the text of sys.version in its memory */
};

struct finder {
    struct fm_runtime *runtime;
    const struct fm_remote *remote;
    const struct fm_maps *maps;
    const char *root; /* in front of the paths of the map */
    char *exe;        /* NULL if unknown */
    FM_VEC(struct module) modules;
    struct fm_error best; /* of the candidate that came furthest */
};

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* 3.9 of "libpython3.9.so.1.0", "python3.9", "libpython3.13t.so"; 0 for a name without a version. */
static uint32_t version_of_name(const char *path)
{
    const char *name = name_of(path);
    if (begins(name, "lib"))
        name += 3;
    unsigned major, minor;
    if (sscanf(name, "python%3u.%3u", &major, &minor) != 2 || major > 9 || minor > 255)
        return 0;
    return major << 24 | minor << 16;
}

/* ---- modules ---- */

static enum rank rank_of(const struct finder *f, const char *path)
{
    const char *name = name_of(path);
    if (begins(name, "libpython"))
        return RANK_LIBPYTHON;
    if (f->exe && strcmp(path, f->exe) == 0)
        return RANK_EXECUTABLE;
    return begins(name, "python") ? RANK_PYTHON_NAME : RANK_OTHER;
}

/* A file mapped from its start, with code in it: what a program or library looks like. */
static bool is_module(const struct fm_maps *maps, size_t i)
{
    const struct fm_mapping *m = &maps->list.data[i];
    if (m->offset || m->path[0] != '/')
        return false;
    for (; i < maps->list.len; i++) {
        const struct fm_mapping *next = &maps->list.data[i];
        if (fm_mapping_same_file(m, next) && next->executable)
            return true;
        if (next->path[0] && !fm_mapping_same_file(m, next))
            return false;
    }
    return false;
}

static void gather_modules(struct finder *f)
{
    for (size_t i = 0; i < f->maps->list.len && f->modules.len < MODULE_LIMIT; i++) {
        if (!is_module(f->maps, i))
            continue;
        const struct fm_mapping *m = &f->maps->list.data[i];
        struct module module = { .first = m, .rank = rank_of(f, m->path) };
        fm_vec_push(&f->modules, module);
    }
}

/* The file of a module if it is the very one that is mapped: its first bytes are the same. */
static struct fm_elf *open_same(const struct finder *f, const struct module *m, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        close(fd);
        return NULL;
    }
    struct fm_elf *elf = fm_elf_new(fd);
    unsigned char here[1024], there[1024];
    if (elf && fm_remote_read(f->remote, m->first->start, there, sizeof there) == 0 &&
        (fm_elf_head(elf, here, sizeof here) != sizeof here ||
         memcmp(here, there, sizeof here) != 0)) {
        fm_elf_free(elf);
        return NULL;
    }
    return elf;
}

static struct fm_elf *open_module(const struct finder *f, const struct module *m)
{
    char path[PATH_MAX + 64];
    struct fm_elf *elf = NULL;
    if (!m->first->deleted) {
        snprintf(path, sizeof path, "%s%s", f->root, m->first->path);
        elf = open_same(f, m, path);
    }
    if (!elf && f->remote->pid && m->rank == RANK_EXECUTABLE) {
        snprintf(path, sizeof path, "/proc/%d/exe", (int)f->remote->pid);
        elf = open_same(f, m, path);
    }
    if (!elf && f->remote->pid) { /* needs CAP_CHECKPOINT_RESTORE */
        snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx", (int)f->remote->pid,
                 (unsigned long long)m->first->start, (unsigned long long)m->first->end);
        elf = open_same(f, m, path);
    }
    return elf;
}

static int read_image(const struct finder *f, struct module *m)
{
    if (m->readable)
        return FM_IMAGE_OK;
    int status = fm_image_read(&m->image, f->remote, m->first->start);
    if (status == FM_IMAGE_NONE && m->rank != RANK_OTHER) { /* a core file may lack the headers */
        struct fm_elf *elf = open_module(f, m);
        unsigned char head[FM_IMAGE_HEADER_BYTES];
        if (elf) {
            size_t len = fm_elf_head(elf, head, sizeof head);
            status = fm_image_parse(&m->image, head, len, m->first->start);
            fm_elf_free(elf);
        }
    }
    m->readable = status == FM_IMAGE_OK;
    return status;
}

static uint32_t text_version(const struct finder *f, struct module *m)
{
    if (!m->version_searched)
        m->text_version = fm_marks_version(&m->image, f->remote);
    m->version_searched = true;
    return m->text_version;
}

/* ---- candidates ---- */

/* Keep the error that tells most: the later in this list, the further its candidate came. */
static void keep_error(struct finder *f, const struct fm_error *err)
{
    static const int order[] = { FM_NOT_PYTHON, FM_DAMAGED, FM_UNSUPPORTED, FM_NOT_READY };
    int old = -1, new = -1;
    for (int i = 0; i < (int)FM_COUNT(order); i++) {
        if (f->best.status == order[i])
            old = i;
        if (err->status == order[i])
            new = i;
    }
    if (new >= old)
        f->best = *err;
}

/* Py_Version (3.11+) is a constant, and so in the file where a core lacks it. */
static uint32_t version_of_symbol(const struct finder *f, const struct module *m,
                                  const struct fm_elf *elf)
{
    uint64_t value, version = 0;
    fm_addr at = fm_image_symbol(&m->image, f->remote, "Py_Version", NULL);
    if (!at && elf && fm_elf_symbol(elf, "Py_Version", &value, NULL))
        at = m->image.bias + value;
    if (at && fm_remote_read(f->remote, at, &version, sizeof version) && elf)
        fm_elf_bytes(elf, at - m->image.bias, &version, sizeof version);
    return version >> 24 == 3 ? version : 0;
}

static uint32_t version_at(const struct finder *f, struct module *m, fm_addr at,
                           const struct fm_elf *elf)
{
    uint32_t version = fm_marks_cookie(f->remote, at);
    if (!version)
        version = version_of_symbol(f, m, elf);
    if (!version)
        version = text_version(f, m);
    return version ? version : version_of_name(m->first->path);
}

static int confirm(const struct finder *f, fm_addr at, const struct fm_layout *layout,
                   struct fm_error *err)
{
    int agrees = -1;
    for (int i = 0; i < CONFIRM_ATTEMPTS && agrees < 0; i++) /* threads come and go meanwhile */
        agrees = fm_marks_confirm(f->remote, at, layout);
    if (agrees == 1)
        return 0;
    if (agrees == 0)
        return fm_error_set(err, FM_NOT_READY,
                            "its interpreter is not initialised yet, or is ending; try again");
    return fm_error_set(err, FM_DAMAGED, "the data of its interpreter make no sense");
}

/* Is there a live interpreter at `at`? */
static bool try_at(struct finder *f, struct module *m, fm_addr at, const struct fm_elf *elf)
{
    struct fm_runtime *r = f->runtime;
    struct fm_error err = FM_ERROR_INIT;
    uint32_t version = version_at(f, m, at, elf);
    if (fm_layout_find(&r->layout, f->remote, at, version, &err) ||
        confirm(f, at, &r->layout, &err)) {
        keep_error(f, &err);
        return false;
    }
    r->at = at;
    r->version_hex = version ? version : r->layout.version_hex;
    snprintf(r->path, sizeof r->path, "%s", m->first->path);
    return true;
}

/* ---- the three ways ---- */

static bool try_exported(struct finder *f, struct module *m)
{
    if (read_image(f, m) == FM_IMAGE_FOREIGN && m->rank != RANK_OTHER) {
        struct fm_error err = FM_ERROR_INIT;
        fm_error_set(&err, FM_UNSUPPORTED,
                     "%s is for another kind of processor than Fathom, "
                     "which reads 64-bit Pythons only",
                     m->first->path);
        keep_error(f, &err);
    }
    fm_addr at = m->readable ? fm_image_symbol(&m->image, f->remote, "_PyRuntime", NULL) : 0;
    return at && try_at(f, m, at, NULL);
}

/* Worth a closer look: named like a Python, or with the text of sys.version in its memory. */
static bool looks_like_python(const struct finder *f, struct module *m)
{
    if (m->rank == RANK_OTHER || !m->readable)
        return false;
    return version_of_name(m->first->path) || text_version(f, m);
}

static bool try_file(struct finder *f, struct module *m)
{
    struct fm_elf *elf = looks_like_python(f, m) ? open_module(f, m) : NULL;
    if (!elf)
        return false;
    uint64_t value;
    bool found = (fm_elf_symbol(elf, "_PyRuntime", &value, NULL) ||
                  fm_elf_section(elf, ".PyRuntime", &value, NULL)) &&
                 try_at(f, m, m->image.bias + value, elf);
    fm_elf_free(elf);
    return found;
}

static bool try_marks(struct finder *f, struct module *m)
{
    if (!looks_like_python(f, m))
        return false;
    for (fm_addr at = 0; (at = fm_marks_find_cookie(&m->image, f->remote, at)); at += 8)
        if (try_at(f, m, at, NULL))
            return true;
    uint32_t version = text_version(f, m);
    struct fm_layout layout;
    struct fm_error err = FM_ERROR_INIT;
    if (!version || version >= 0x030d0000)
        return false;
    if (fm_layout_find(&layout, f->remote, m->image.start, version, &err)) {
        keep_error(f, &err);
        return false;
    }
    fm_addr at = fm_marks_find_interpreters(&m->image, f->remote, &layout);
    return at && try_at(f, m, at, NULL);
}

static bool find_by(struct finder *f, bool (*way)(struct finder *, struct module *))
{
    for (int rank = 0; rank < RANK_COUNT; rank++)
        for (size_t i = 0; i < f->modules.len; i++)
            if ((int)f->modules.data[i].rank == rank && way(f, &f->modules.data[i]))
                return true;
    return false;
}

/* ---- when nothing was found ---- */

/* What the names of the modules say about a process without a CPython that can be read. */
static int explain_absence(const struct finder *f, struct fm_error *err)
{
    bool needs_library = false;
    for (size_t i = 0; i < f->modules.len; i++) {
        const struct module *m = &f->modules.data[i];
        const char *path = m->first->path, *name = name_of(path);
        uint32_t version = version_of_name(path);
        if (begins(name, "libpypy") || begins(name, "pypy"))
            return fm_error_set(err, FM_UNSUPPORTED,
                                "it runs PyPy; Fathom reads CPython " FM_OLDEST_PYTHON
                                " to " FM_NEWEST_PYTHON);
        if (version && version < 0x03070000) /* before there was a _PyRuntime */
            return fm_error_set(err, FM_UNSUPPORTED,
                                "it runs Python %u.%u; Fathom reads " FM_OLDEST_PYTHON
                                " to " FM_NEWEST_PYTHON,
                                version >> 24, version >> 16 & 0xff);
        if (m->readable && m->rank == RANK_EXECUTABLE &&
            fm_image_needs(&m->image, f->remote, "libpython"))
            needs_library = true;
    }
    for (size_t i = 0; i < f->modules.len; i++)
        if (f->modules.data[i].rank != RANK_OTHER &&
            version_of_name(f->modules.data[i].first->path))
            return fm_error_set(err, FM_NOT_READY,
                                "there is no initialised interpreter in %s: it "
                                "is starting or ending, or was built in a way Fathom does not know",
                                f->modules.data[i].first->path);
    if (needs_library)
        return fm_error_set(err, FM_NOT_READY, "its libpython is not loaded yet; try again");
    return fm_error_set(err, FM_NOT_PYTHON, "there is no Python in it (it runs %s)",
                        f->exe ? f->exe : "an unknown program");
}

static int find(struct finder *f, struct fm_error *err)
{
    gather_modules(f);
    if (find_by(f, try_exported) || find_by(f, try_file) || find_by(f, try_marks))
        return 0;
    if (f->best.status) {
        if (err)
            *err = f->best;
        return f->best.status;
    }
    return explain_absence(f, err);
}

int fm_runtime_find_in(struct fm_runtime *runtime, const struct fm_remote *remote,
                       const struct fm_maps *maps, const char *root, const char *exe,
                       struct fm_error *err)
{
    struct finder f = {
        .runtime = runtime,
        .remote = remote,
        .maps = maps,
        .root = root,
        .exe = exe ? fm_strdup(exe) : NULL,
    };
    *runtime = (struct fm_runtime){ 0 };
    int status = find(&f, err);
    fm_vec_release(&f.modules);
    free(f.exe);
    return status;
}

/* ---- a running process ---- */

/* May it be read at all? One byte of its first readable mapping tells. */
static int probe(const struct fm_remote *remote, const struct fm_maps *maps, struct fm_error *err)
{
    for (size_t i = 0; i < maps->list.len; i++) {
        const struct fm_mapping *m = &maps->list.data[i];
        char byte;
        if (!m->readable)
            continue;
        int failed = fm_remote_read(remote, m->start, &byte, 1);
        if (failed && failed != -EFAULT && failed != -EIO) {
            fm_runtime_explain_refusal(remote->pid, -failed, err);
            return err ? err->status : FM_FORBIDDEN;
        }
        return 0;
    }
    fm_runtime_explain_refusal(remote->pid, ESRCH, err); /* a zombie, a kernel thread */
    return err ? err->status : FM_NOT_FOUND;
}

/* Did the process execute another program while we looked? Then nothing we saw counts. */
static bool map_changed(pid_t pid, const struct fm_maps *before)
{
    struct fm_maps now;
    if (fm_maps_read(&now, pid, NULL, NULL))
        return true;
    bool changed = !now.list.len || !before->list.len ||
                   now.list.data[0].start != before->list.data[0].start ||
                   !fm_mapping_same_file(&now.list.data[0], &before->list.data[0]);
    fm_maps_release(&now);
    return changed;
}

static int find_live(struct fm_runtime *runtime, const struct fm_remote *remote, bool *again,
                     struct fm_error *err)
{
    struct fm_maps maps;
    int errnum = 0, status = fm_maps_read(&maps, remote->pid, &errnum, err);
    if (status == FM_FORBIDDEN || status == FM_NOT_FOUND) {
        fm_runtime_explain_refusal(remote->pid, errnum, err);
        return err ? err->status : status;
    }
    if (status)
        return status;
    status = probe(remote, &maps, err);
    if (!status) {
        char root[64];
        snprintf(root, sizeof root, "/proc/%d/root", (int)remote->pid);
        fm_autofree char *exe = fm_process_exe(remote->pid);
        status = fm_runtime_find_in(runtime, remote, &maps, root, exe, err);
        if (status)
            fm_error_context(err, "process %d", (int)remote->pid);
        *again = status && map_changed(remote->pid, &maps);
    }
    fm_maps_release(&maps);
    return status;
}

int fm_runtime_find(struct fm_runtime *runtime, const struct fm_remote *remote,
                    struct fm_error *err)
{
    struct fm_error own = FM_ERROR_INIT;
    int status = FM_NOT_READY;
    bool again = true;
    for (int i = 0; i < 3 && again; i++) {
        again = false;
        own = (struct fm_error)FM_ERROR_INIT;
        status = find_live(runtime, remote, &again, &own);
    }
    if (status && err)
        *err = own;
    return status;
}
