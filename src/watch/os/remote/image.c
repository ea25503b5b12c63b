/* A program or library in the memory of a process; see image.h. */
#include "watch/os/remote/image.h"

#include <elf.h>
#include <string.h>

#include "base/memory.h"

#define PAGE_BYTES      4096u
#define DYNAMIC_ENTRIES 512
#define CHAIN_LIMIT     4096 /* symbols in one hash bucket */
#define NAME_LIMIT      128

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OUR_ORDER ELFDATA2LSB
#else
#define OUR_ORDER ELFDATA2MSB
#endif

/* What the dynamic section says, as addresses in the process. */
struct dynamic {
    fm_addr strings, symbols, gnu_hash, sysv_hash;
    uint64_t strings_bytes;
};

static int check_header(const Elf64_Ehdr *header, size_t len)
{
    if (len < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return FM_IMAGE_NONE;
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != OUR_ORDER)
        return FM_IMAGE_FOREIGN;
    if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
        return FM_IMAGE_NONE;
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phoff > len ||
        header->e_phnum > (len - header->e_phoff) / sizeof(Elf64_Phdr))
        return FM_IMAGE_NONE;
    return FM_IMAGE_OK;
}

static void add_segment(struct fm_image *image, const Elf64_Phdr *p)
{
    fm_addr start = image->bias + p->p_vaddr, end = start + p->p_memsz;
    if (end < start)
        return;
    if (!image->end || start < image->start)
        image->start = start;
    if (end > image->end)
        image->end = end;
    if ((p->p_flags & PF_W) && image->writable_count < FM_IMAGE_SEGMENTS)
        image->writable[image->writable_count++] = (struct fm_image_segment){ start, end };
}

int fm_image_parse(struct fm_image *image, const void *bytes, size_t len, fm_addr at)
{
    *image = (struct fm_image){ 0 };
    Elf64_Ehdr header = { 0 };
    memcpy(&header, bytes, len < sizeof header ? len : sizeof header);
    int status = check_header(&header, len);
    if (status)
        return status;
    Elf64_Phdr segments[(FM_IMAGE_HEADER_BYTES / sizeof(Elf64_Phdr))];
    if (header.e_phnum > FM_COUNT(segments))
        return FM_IMAGE_NONE;
    memcpy(segments, (const char *)bytes + header.e_phoff, header.e_phnum * sizeof *segments);

    bool placed = false;
    for (int i = 0; i < header.e_phnum && !placed; i++) {
        if (segments[i].p_type != PT_LOAD || segments[i].p_offset >= PAGE_BYTES)
            continue;
        image->bias = at - (segments[i].p_vaddr & ~(uint64_t)(PAGE_BYTES - 1));
        placed = true;
    }
    if (!placed)
        return FM_IMAGE_NONE;
    for (int i = 0; i < header.e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD)
            add_segment(image, &segments[i]);
        if (segments[i].p_type == PT_DYNAMIC) {
            image->dynamic = image->bias + segments[i].p_vaddr;
            image->dynamic_bytes = segments[i].p_memsz;
        }
    }
    return image->end ? FM_IMAGE_OK : FM_IMAGE_NONE;
}

int fm_image_read(struct fm_image *image, const struct fm_remote *remote, fm_addr at)
{
    unsigned char bytes[FM_IMAGE_HEADER_BYTES];
    *image = (struct fm_image){ 0 };
    if (fm_remote_read(remote, at, bytes, sizeof bytes))
        return FM_IMAGE_NONE;
    return fm_image_parse(image, bytes, sizeof bytes, at);
}

/* glibc turns the addresses in the dynamic section into those of the process, musl leaves them. */
static fm_addr placed(const struct fm_image *image, uint64_t value)
{
    return value >= image->start && value < image->end ? value : value + image->bias;
}

static int read_entries(const struct fm_image *image, const struct fm_remote *remote,
                        Elf64_Dyn entries[DYNAMIC_ENTRIES])
{
    size_t bytes = image->dynamic_bytes;
    if (bytes > DYNAMIC_ENTRIES * sizeof *entries)
        bytes = DYNAMIC_ENTRIES * sizeof *entries;
    if (!image->dynamic || fm_remote_read(remote, image->dynamic, entries, bytes))
        return 0;
    int n = bytes / sizeof *entries;
    for (int i = 0; i < n; i++)
        if (entries[i].d_tag == DT_NULL)
            return i;
    return n;
}

static void read_dynamic(const struct fm_image *image, const Elf64_Dyn *entries, int n,
                         struct dynamic *d)
{
    *d = (struct dynamic){ 0 };
    for (int i = 0; i < n; i++) {
        uint64_t value = entries[i].d_un.d_val;
        switch (entries[i].d_tag) {
        case DT_STRTAB:
            d->strings = placed(image, value);
            break;
        case DT_STRSZ:
            d->strings_bytes = value;
            break;
        case DT_SYMTAB:
            d->symbols = placed(image, value);
            break;
        case DT_GNU_HASH:
            d->gnu_hash = placed(image, value);
            break;
        case DT_HASH:
            d->sysv_hash = placed(image, value);
            break;
        }
    }
}

static bool has_name(const struct dynamic *d, const struct fm_remote *remote, uint64_t offset,
                     const char *name, size_t len)
{
    char text[NAME_LIMIT];
    if (len > sizeof text || offset >= d->strings_bytes || d->strings_bytes - offset < len)
        return false;
    return fm_remote_read(remote, d->strings + offset, text, len) == 0 &&
           memcmp(text, name, len) == 0;
}

/* The symbol of this index if it is `name` and defined here. */
static bool symbol_is(const struct dynamic *d, const struct fm_remote *remote, uint32_t index,
                      const char *name, Elf64_Sym *symbol)
{
    return fm_remote_read(remote, d->symbols + (uint64_t)index * sizeof *symbol, symbol,
                          sizeof *symbol) == 0 &&
           symbol->st_shndx != SHN_UNDEF && symbol->st_value &&
           has_name(d, remote, symbol->st_name, name, strlen(name) + 1);
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* buckets[hash % n] is the first symbol of a chain; the lowest bit of a chain word ends it. */
static bool find_gnu(const struct dynamic *d, const struct fm_remote *remote, const char *name,
                     Elf64_Sym *symbol)
{
    struct {
        uint32_t buckets, first, bloom_words, shift;
    } table;
    if (!d->gnu_hash || fm_remote_read(remote, d->gnu_hash, &table, sizeof table) || !table.buckets)
        return false;
    uint32_t hash = gnu_hash_of(name), index;
    fm_addr buckets = d->gnu_hash + sizeof table + (uint64_t)table.bloom_words * 8;
    fm_addr chains = buckets + (uint64_t)table.buckets * 4;
    if (fm_remote_read(remote, buckets + (uint64_t)(hash % table.buckets) * 4, &index, 4))
        return false;
    for (int i = 0; index >= table.first && i < CHAIN_LIMIT; i++, index++) {
        uint32_t word;
        if (fm_remote_read(remote, chains + (uint64_t)(index - table.first) * 4, &word, 4))
            return false;
        if ((word | 1) == (hash | 1) && symbol_is(d, remote, index, name, symbol))
            return true;
        if (word & 1)
            return false;
    }
    return false;
}

static uint32_t sysv_hash_of(const char *name)
{
    uint32_t hash = 0;
    for (; *name; name++) {
        hash = (hash << 4) + (unsigned char)*name;
        uint32_t high = hash & 0xf0000000;
        hash = (hash ^ high >> 24) & ~high;
    }
    return hash;
}

static bool find_sysv(const struct dynamic *d, const struct fm_remote *remote, const char *name,
                      Elf64_Sym *symbol)
{
    uint32_t table[2], index;
    if (!d->sysv_hash || fm_remote_read(remote, d->sysv_hash, table, sizeof table) || !table[0])
        return false;
    fm_addr buckets = d->sysv_hash + sizeof table, chains = buckets + (uint64_t)table[0] * 4;
    if (fm_remote_read(remote, buckets + (uint64_t)(sysv_hash_of(name) % table[0]) * 4, &index, 4))
        return false;
    for (int i = 0; index && index < table[1] && i < CHAIN_LIMIT; i++) {
        if (symbol_is(d, remote, index, name, symbol))
            return true;
        if (fm_remote_read(remote, chains + (uint64_t)index * 4, &index, 4))
            return false;
    }
    return false;
}

fm_addr fm_image_symbol(const struct fm_image *image, const struct fm_remote *remote,
                        const char *name, uint64_t *size)
{
    Elf64_Dyn entries[DYNAMIC_ENTRIES];
    struct dynamic d;
    Elf64_Sym symbol;
    read_dynamic(image, entries, read_entries(image, remote, entries), &d);
    if (!d.strings || !d.symbols)
        return 0;
    if (!find_gnu(&d, remote, name, &symbol) && !find_sysv(&d, remote, name, &symbol))
        return 0;
    fm_addr at = image->bias + symbol.st_value;
    if (at < image->start || at >= image->end)
        return 0;
    if (size)
        *size = symbol.st_size;
    return at;
}

bool fm_image_needs(const struct fm_image *image, const struct fm_remote *remote,
                    const char *prefix)
{
    Elf64_Dyn entries[DYNAMIC_ENTRIES];
    struct dynamic d;
    int n = read_entries(image, remote, entries);
    read_dynamic(image, entries, n, &d);
    for (int i = 0; d.strings && i < n; i++)
        if (entries[i].d_tag == DT_NEEDED &&
            has_name(&d, remote, entries[i].d_un.d_val, prefix, strlen(prefix)))
            return true;
    return false;
}
