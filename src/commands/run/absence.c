/* Why no agent got into a Python; see absence.h. */
#include "commands/run/absence.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/memory.h"
#include "watch/os/path.h"

#define SAMPLING "`fathom run` without --calls, --trace and --lines samples it"

static bool is_privileged(const char *path)
{
    struct stat st;
    return (stat(path, &st) == 0 && (st.st_mode & (S_ISUID | S_ISGID))) ||
           getxattr(path, "security.capability", NULL, 0) > 0;
}

/* A program of this machine's kind that asks for no loader. */
static bool is_static(const char *path)
{
    Elf64_Ehdr head;
    Elf64_Phdr part = { 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    bool elf = pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head &&
               memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
               head.e_phentsize == sizeof part;
    bool loader = false;
    for (unsigned i = 0; elf && i < head.e_phnum && !loader; i++)
        loader = pread(fd, &part, sizeof part, (off_t)(head.e_phoff + i * sizeof part)) ==
                     (ssize_t)sizeof part &&
                 part.p_type == PT_INTERP;
    close(fd);
    return elf && !loader;
}

static bool is_explained(const struct fm_profile *p)
{
    for (size_t i = 0; i < p->processes.len; i++)
        if (p->processes.data[i].profiled)
            return true;
    for (size_t i = 0; i < p->notes.len; i++)
        if (strcmp(fm_profile_text(p, p->notes.data[i].kind), "unprofiled") == 0)
            return true;
    return false;
}

void fm_run_absence_note(struct fm_profile *p, const struct fm_run_command *command)
{
    char text[1024];
    if (is_explained(p))
        return;
    fm_autofree char *found =
        strchr(command->file, '/') ? NULL : fm_path_find_program(command->file);
    const char *path = found ? found : command->file;
    if (is_privileged(path))
        snprintf(text, sizeof text,
                 FM_RUN_ABSENCE ": %s is privileged (set-user-id, capabilities), and the system "
                                "keeps agents out of it and of what it starts; run Fathom as root, "
                                "which samples, too: `sudo fathom run …`",
                 path);
    else if (is_static(path))
        snprintf(text, sizeof text,
                 FM_RUN_ABSENCE ": %s is linked statically, so that no agent can be loaded "
                                "into it; " SAMPLING,
                 path);
    else
        snprintf(text, sizeof text,
                 FM_RUN_ABSENCE
                 ": none ran, or no agent could get into it, because it hides its symbols, has its "
                 "code in sub-interpreters, or was started without this environment (sudo, "
                 "set-user-id); " SAMPLING);
    fm_profile_note(p, FM_NONE, "unprofiled", 1, text);
}
