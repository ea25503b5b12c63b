/*
 * The facts for `fathom doctor`: agents, the Pythons on PATH and in running processes. What follows
 * from them stands in doctor_findings.c.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zstd.h>

#include "commands/doctor/findings.h"
#include "watch/os/locate.h"
#include "watch/os/path.h"
#include "watch/os/remote/elf.h"

#define PYTHONS_LIMIT   64
#define PROCESSES_LIMIT 200

/* ---- the machine ---- */

static void gather_system(struct fm_doctor *d)
{
    struct utsname u;
    if (uname(&u) == 0) {
        snprintf(d->kernel, sizeof d->kernel, "%s %s", u.sysname, u.release);
        snprintf(d->machine, sizeof d->machine, "%s", u.machine);
    }
    snprintf(d->libraries, sizeof d->libraries, "zstd %s", ZSTD_versionString());
}

static int compare_minors(const void *a, const void *b)
{
    return (int)*(const unsigned *)a - (int)*(const unsigned *)b;
}

/* "_agent.cpython-311-x86_64-linux-gnu.so" is for 3.11. */
static void gather_agents(struct fm_doctor *d)
{
    struct fm_error err = FM_ERROR_INIT;
    d->agents = fm_locate_agents(&err);
    snprintf(d->agents_missing, sizeof d->agents_missing, "%s", err.text);
    DIR *dir = d->agents ? opendir(d->agents) : NULL;
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        unsigned minor;
        if (sscanf(entry->d_name, "_agent.cpython-3%3u-", &minor) == 1 &&
            fm_path_ends_with(entry->d_name, ".so"))
            fm_vec_push(&d->agent_minors, minor);
    }
    closedir(dir);
    if (d->agent_minors.len)
        qsort(d->agent_minors.data, d->agent_minors.len, sizeof(unsigned), compare_minors);
}

bool fm_doctor_has_agent(const struct fm_doctor *d, uint32_t version_hex)
{
    for (size_t i = 0; i < d->agent_minors.len; i++)
        if (version_hex >> 16 == (3u << 8 | d->agent_minors.data[i]))
            return true;
    return false;
}

/* ---- Pythons on PATH ---- */

/* "python", "python3", "python3.12": not python3-config and the like. */
static bool is_python_name(const char *name)
{
    if (strncmp(name, "python", 6) != 0)
        return false;
    name += 6;
    return name[strspn(name, "0123456789.")] == '\0';
}

/* The version in the file itself (3.11+), or in its name; nothing is executed. False: no program,
 * but a script that chooses one, as pyenv's. */
static bool read_python_file(struct fm_doctor_python *python, const char *file)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct fm_elf *elf = fd < 0 ? NULL : fm_elf_new(fd);
    uint64_t at, version = 0;
    unsigned major, minor;
    if (!elf)
        return false;
    if (fm_elf_symbol(elf, "Py_Version", &at, NULL) &&
        fm_elf_bytes(elf, at, &version, sizeof version) && version >> 24 == 3) {
        python->version_hex = version;
        python->exact = true;
    } else if (sscanf(fm_path_base(file), "python%3u.%3u", &major, &minor) == 2) {
        python->version_hex = major << 24 | (minor & 0xff) << 16;
    }
    fm_elf_free(elf);
    return true;
}

static bool is_known_version(uint32_t version_hex)
{
    unsigned minor = version_hex >> 16 & 0xff;
    return version_hex >> 24 == 3 && minor >= FM_OLDEST_MINOR && minor <= FM_NEWEST_MINOR;
}

struct seen_files {
    FM_VEC(char *) list;
};

/* Names for one and the same file are one Python; the first on PATH is shown. */
static bool is_new(struct seen_files *seen, const char *file)
{
    for (size_t i = 0; i < seen->list.len; i++)
        if (strcmp(seen->list.data[i], file) == 0)
            return false;
    fm_vec_push(&seen->list, fm_strdup(file));
    return true;
}

static void add_python(struct fm_doctor *d, const char *path, const char *file)
{
    struct fm_doctor_python python = { 0 };
    if (!read_python_file(&python, file)) {
        d->scripts++;
        return;
    }
    python.path = fm_strdup(path);
    python.readable = is_known_version(python.version_hex);
    python.agent = fm_doctor_has_agent(d, python.version_hex);
    fm_vec_push(&d->pythons, python);
}

static void gather_folder(struct fm_doctor *d, const char *folder, struct seen_files *seen)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        fm_autofree char *path = is_python_name(name) ? fm_path_join(folder, name) : NULL;
        fm_autofree char *file = path && fm_path_is_executable(path) ? realpath(path, NULL) : NULL;
        if (file && d->pythons.len < PYTHONS_LIMIT && is_new(seen, file)) {
            add_python(d, path, file);
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

static int compare_numbers(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* Behind pyenv's scripts in ROOT/shims stand the programs in ROOT/versions. */
static void gather_behind_shims(struct fm_doctor *d, const char *folder, struct seen_files *seen)
{
    glob_t found = { 0 };
    if (!fm_path_ends_with(folder, "/shims"))
        return;
    fm_autofree char *pattern = fm_path_join(folder, "../versions/*/bin");
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
        qsort(found.gl_pathv, found.gl_pathc, sizeof(char *), compare_numbers);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        fm_autofree char *real = realpath(found.gl_pathv[i], NULL);
        if (real)
            gather_folder(d, real, seen);
    }
    globfree(&found);
}

static void gather_pythons(struct fm_doctor *d)
{
    const char *path = getenv("PATH");
    struct seen_files seen = { 0 };
    fm_autofree char *copy = fm_strdup(path ? path : "/usr/local/bin:/usr/bin:/bin");
    for (char *rest = copy, *folder; (folder = strsep(&rest, ":"));) {
        gather_folder(d, *folder ? folder : ".", &seen);
        gather_behind_shims(d, folder, &seen);
    }
    for (size_t i = 0; i < seen.list.len; i++)
        free(seen.list.data[i]);
    fm_vec_release(&seen.list);
}

/* ---- running Pythons ---- */

static char *text_or_none(char *text)
{
    return text ? text : fm_strdup("");
}

/* Worth a line: a Python, or something that calls itself one and cannot be looked at. */
static bool is_interesting(int status, const struct fm_proc *process)
{
    if (status == FM_FORBIDDEN)
        return strncmp(process->name, "python", 6) == 0;
    return status == 0 || status == FM_UNSUPPORTED || status == FM_NOT_READY ||
           status == FM_DAMAGED;
}

static void look_at_process(struct fm_doctor *d, pid_t pid)
{
    struct fm_proc process;
    if (fm_process_read(&process, pid) || process.kernel_thread || process.state == 'Z')
        return;
    if (process.uid != getuid() && !d->permits.ptrace_capable)
        return;
    struct fm_remote remote;
    struct fm_error err = FM_ERROR_INIT;
    fm_remote_live(&remote, pid);
    int status = fm_runtime_find(&d->runtime, &remote, &err);
    if (!is_interesting(status, &process))
        return;
    struct fm_doctor_process found = {
        .pid = pid,
        .uid = process.uid,
        .status = status,
        .command = text_or_none(fm_process_command(pid)),
        .version_hex = status ? 0 : d->runtime.version_hex,
        .free_threaded = !status && d->runtime.layout.free_threaded,
        .why = fm_strdup(err.text),
    };
    fm_vec_push(&d->processes, found);
}

static void gather_processes(struct fm_doctor *d)
{
    struct fm_pids pids;
    if (fm_procfs_pids(&pids))
        return;
    for (size_t i = 0; i < pids.list.len && d->processes.len < PROCESSES_LIMIT; i++)
        if (pids.list.data[i] != getpid())
            look_at_process(d, pids.list.data[i]);
    fm_pids_release(&pids);
}

/* ---- one process ---- */

static int gather_process(struct fm_doctor *d, struct fm_error *err)
{
    int failed = fm_process_read(&d->process, d->pid);
    if (failed) {
        fm_runtime_explain_refusal(d->pid, -failed, err);
        return err->status;
    }
    d->command = text_or_none(fm_process_command(d->pid));
    d->exe = text_or_none(fm_process_exe(d->pid));
    d->cwd = text_or_none(fm_process_cwd(d->pid));
    struct fm_remote remote;
    struct fm_error why = FM_ERROR_INIT;
    fm_remote_live(&remote, d->pid);
    int status = fm_runtime_find(&d->runtime, &remote, &why);
    if (status == FM_NOT_FOUND) {
        *err = why;
        return status;
    }
    d->found = status == 0;
    fm_doctor_find_process(d, &why);
    return 0;
}

int fm_doctor_gather(struct fm_doctor *d, pid_t pid, struct fm_error *err)
{
    *d = (struct fm_doctor){ .pid = pid };
    fm_permits_try(&d->permits);
    gather_system(d);
    gather_agents(d);
    if (pid)
        return gather_process(d, err);
    gather_pythons(d);
    gather_processes(d);
    fm_leftovers_find(&d->runs);
    fm_doctor_find(d);
    return 0;
}

void fm_doctor_release(struct fm_doctor *d)
{
    for (size_t i = 0; i < d->pythons.len; i++)
        free(d->pythons.data[i].path);
    for (size_t i = 0; i < d->processes.len; i++) {
        free(d->processes.data[i].command);
        free(d->processes.data[i].why);
    }
    fm_vec_release(&d->pythons);
    fm_vec_release(&d->processes);
    fm_vec_release(&d->findings);
    fm_vec_release(&d->agent_minors);
    fm_leftovers_release(&d->runs);
    free(d->agents);
    free(d->command);
    free(d->exe);
    free(d->cwd);
}
