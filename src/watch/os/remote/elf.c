/* A program or library as a file; see elf.h. */
#include "watch/os/remote/elf.h"

#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

struct fm_elf {
    Elf *elf;
    int fd;
};

struct fm_elf *fm_elf_new(int fd)
{
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    if (!elf || elf_kind(elf) != ELF_K_ELF) {
        elf_end(elf);
        close(fd);
        return NULL;
    }
    struct fm_elf *e = fm_malloc(sizeof *e);
    *e = (struct fm_elf){ elf, fd };
    return e;
}

void fm_elf_free(struct fm_elf *e)
{
    if (!e)
        return;
    elf_end(e->elf);
    close(e->fd);
    free(e);
}

size_t fm_elf_head(const struct fm_elf *e, void *into, size_t len)
{
    ssize_t got = pread(e->fd, into, len, 0);
    return got > 0 ? got : 0;
}

static bool find_in_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *name,
                          GElf_Sym *symbol)
{
    Elf_Data *data = elf_getdata(section, NULL);
    if (!data || !header->sh_entsize)
        return false;
    size_t count = data->d_size / header->sh_entsize;
    for (size_t i = 1; i < count; i++) {
        if (!gelf_getsym(data, i, symbol))
            return false;
        if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value)
            continue;
        const char *text = elf_strptr(elf, header->sh_link, symbol->st_name);
        if (text && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

static bool find_symbol(const struct fm_elf *e, GElf_Word type, const char *name, GElf_Sym *symbol)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(e->elf, section));) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) && header.sh_type == type &&
            find_in_table(e->elf, section, &header, name, symbol))
            return true;
    }
    return false;
}

bool fm_elf_symbol(const struct fm_elf *e, const char *name, uint64_t *value, uint64_t *size)
{
    GElf_Sym symbol;
    if (!find_symbol(e, SHT_DYNSYM, name, &symbol) && !find_symbol(e, SHT_SYMTAB, name, &symbol))
        return false;
    *value = symbol.st_value;
    if (size)
        *size = symbol.st_size;
    return true;
}

bool fm_elf_section(const struct fm_elf *e, const char *name, uint64_t *value, uint64_t *size)
{
    size_t names;
    if (elf_getshdrstrndx(e->elf, &names))
        return false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(e->elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header))
            continue;
        const char *text = elf_strptr(e->elf, names, header.sh_name);
        if (!text || strcmp(text, name) != 0)
            continue;
        *value = header.sh_addr;
        if (size)
            *size = header.sh_size;
        return true;
    }
    return false;
}

bool fm_elf_bytes(const struct fm_elf *e, uint64_t value, void *into, size_t len)
{
    size_t count;
    if (elf_getphdrnum(e->elf, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr p;
        if (!gelf_getphdr(e->elf, i, &p) || p.p_type != PT_LOAD || value < p.p_vaddr)
            continue;
        uint64_t skip = value - p.p_vaddr;
        if (skip < p.p_filesz && p.p_filesz - skip >= len)
            return pread(e->fd, into, len, p.p_offset + skip) == (ssize_t)len;
    }
    return false;
}
