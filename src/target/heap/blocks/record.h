/*
 * The record of a living block: which account it belongs to, how large it is, and when it was made.
 *
 * One word: account (23 bits), slack (8 bits), one free bit, birth (32 bits). 0 is no record, since
 * there is no account 0. `slack` is by how much the block is smaller than its class: tables that know
 * sizes otherwise do not use it. `birth` is how many allocations the thread of the account had made.
 */
#ifndef FM_HEAP_RECORD_H
#define FM_HEAP_RECORD_H

#include <stdint.h>

#define FM_RECORD_ACCOUNTS (1u << 23)

static inline uint64_t fm_record(uint32_t account, uint32_t slack, uint32_t birth)
{
    return (uint64_t)birth << 32 | (uint64_t)slack << 23 | account;
}

static inline uint32_t fm_record_account(uint64_t record)
{
    return (uint32_t)record & (FM_RECORD_ACCOUNTS - 1);
}

static inline uint32_t fm_record_slack(uint64_t record)
{
    return (uint32_t)record >> 23 & 0xff;
}

static inline uint32_t fm_record_birth(uint64_t record)
{
    return (uint32_t)(record >> 32);
}

#endif
