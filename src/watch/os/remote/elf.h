/*
 * A program or library as a file: symbols, sections, bytes, through libelf.
 *
 * Addresses are those of the file; in a process the bias of its image (image.h) is added. The file is
 * read, not mapped, so one that shrinks meanwhile does no harm.
 */
#ifndef FM_OS_ELF_H
#define FM_OS_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fm_elf;

/* Takes the descriptor and closes it, in any case; NULL if the file is no ELF program. */
struct fm_elf *fm_elf_new(int fd);
void fm_elf_free(struct fm_elf *elf);

/* The first bytes of the file: how many, at most `len`. */
size_t fm_elf_head(const struct fm_elf *elf, void *into, size_t len);

/* A symbol defined in the file, among the exported ones, then among all. */
bool fm_elf_symbol(const struct fm_elf *elf, const char *name, uint64_t *value, uint64_t *size);

bool fm_elf_section(const struct fm_elf *elf, const char *name, uint64_t *value, uint64_t *size);

/* The bytes at an address of the file; false if the file does not hold all of them. */
bool fm_elf_bytes(const struct fm_elf *elf, uint64_t value, void *into, size_t len);

#endif
