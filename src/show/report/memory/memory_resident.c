/*
 * What resident memory was made of (`--memory=resident`): a table of each process that was looked into,
 * when it had most and the last time, as text, JSON or CSV.
 */
#include <string.h>

#include "base/clean.h"
#include "show/report/csv_text.h"
#include "show/report/json_text.h"
#include "show/report/memory/memory.h"
#include "show/report/number.h"
#include "show/report/report.h"

#define RESERVES_LEAST 50 /* of resident memory, that part, to be in a header */

static const char *const when_names[FM_RESIDENT_WHENS] = { "highest", "last" };

/* The accounts of a process, by when; NULL where there is none. */
struct accounts {
    const struct fm_resident *at[FM_RESIDENT_WHENS];
};

static struct accounts accounts_of(const struct fm_report *r, uint32_t process)
{
    struct accounts found = { { NULL } };
    const struct fm_memory *memory = &r->p->memory;
    for (size_t i = 0; i < memory->residents.len; i++)
        if (memory->residents.data[i].process == process)
            found.at[memory->residents.data[i].when] = &memory->residents.data[i];
    return found;
}

static bool is_shown(const struct fm_report *r, uint32_t process)
{
    return process < r->p->processes.len &&
           (r->scope.process == FM_NONE || r->scope.process == process);
}

static int64_t since_start(const struct fm_report *r, const struct fm_resident *account)
{
    uint64_t start_ns = r->p->processes.data[account->process].start_ns;
    return account->at_ns > start_ns ? (int64_t)(account->at_ns - start_ns) : 0;
}

/* ---- text ---- */

static void add_bytes(struct fm_table *t, const struct fm_resident *account, int64_t bytes)
{
    char number[FM_NUMBER_BYTES];
    if (!account) {
        fm_table_cell(t, FM_COLOR_NONE, "");
        fm_table_cell(t, FM_COLOR_NONE, "");
        return;
    }
    fm_table_cell(t, fm_color_heat((double)bytes, (double)account->rss),
                  fm_number_bytes(number, bytes));
    fm_table_cell(t, FM_COLOR_NONE, fm_number_percent(number, (double)bytes, (double)account->rss));
}

static void show_parts(const struct fm_report *r, const struct accounts *all)
{
    struct fm_table t;
    fm_table_init(&t, r->style);
    for (int when = 0; when < FM_RESIDENT_WHENS; when++) {
        fm_table_column(&t, when_names[when], FM_TABLE_RIGHT);
        fm_table_column(&t, "%", FM_TABLE_RIGHT);
    }
    fm_table_column(&t, "resident memory", FM_TABLE_LEFT);
    for (int part = 0; part < FM_RESIDENT_PARTS; part++) {
        bool any = false;
        for (int when = 0; when < FM_RESIDENT_WHENS; when++)
            any = any || (all->at[when] && all->at[when]->parts[part]);
        for (int when = 0; any && when < FM_RESIDENT_WHENS; when++)
            add_bytes(&t, all->at[when], all->at[when] ? all->at[when]->parts[part] : 0);
        if (any)
            fm_table_cell(&t, FM_COLOR_NAME, fm_resident_title((enum fm_resident_part)part));
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
}

static void print_sentence(const struct fm_report *r, const char *text)
{
    fm_clean_put(r->out, text);
    fputc('\n', r->out);
}

/* "process 12: 512 MiB resident, 1.20 s after its start; the last look found 20 MiB, at 3.00 s" */
static void show_head(const struct fm_report *r, const struct accounts *all)
{
    fm_autobuffer line = FM_BUFFER_INIT;
    char bytes[FM_NUMBER_BYTES], time[FM_NUMBER_BYTES];
    for (int when = 0; when < FM_RESIDENT_WHENS; when++) {
        const struct fm_resident *account = all->at[when];
        if (!account)
            continue;
        if (!line.len)
            fm_buffer_addf(&line, "process %u: ", r->p->processes.data[account->process].pid);
        else
            fm_buffer_add_text(&line, "; ");
        fm_buffer_addf(&line, "%s %s resident, %s after its start", when_names[when],
                       fm_number_bytes(bytes, account->rss),
                       fm_number_time(time, since_start(r, account)));
    }
    fm_color_begin(&r->style, r->out, FM_COLOR_BOLD);
    print_sentence(r, fm_buffer_text(&line));
    fm_color_end(&r->style, r->out, FM_COLOR_BOLD);
}

static const struct fm_resident *shown_account(const struct accounts *all)
{
    return all->at[FM_RESIDENT_HIGHEST] ? all->at[FM_RESIDENT_HIGHEST] : all->at[FM_RESIDENT_LAST];
}

/* "reserved by libarrow.so.2500: 1.00 GiB, of which 200 MiB are resident" */
static void show_reserves(const struct fm_report *r, const struct fm_resident *account)
{
    const struct fm_memory *memory = &r->p->memory;
    char reserved[FM_NUMBER_BYTES], resident[FM_NUMBER_BYTES];
    for (size_t i = 0; i < memory->reserves.len; i++) {
        const struct fm_reserve *reserve = &memory->reserves.data[i];
        fm_autobuffer line = FM_BUFFER_INIT;
        if (reserve->process != account->process || reserve->when != account->when)
            continue;
        const char *path = fm_profile_text(r->p, reserve->library), *base = strrchr(path, '/');
        fm_buffer_addf(&line, "reserved by %s: %s, of which %s are resident",
                       !*path ? "code that is not known"
                       : base ? base + 1
                              : path,
                       fm_number_bytes(reserved, reserve->reserved),
                       fm_number_bytes(resident, reserve->resident));
        print_sentence(r, fm_buffer_text(&line));
    }
}

/* In the header of every report: what is of no line, and yet much of what is resident. Of several
 * processes the one that has most of it speaks for all. */
void fm_report_memory_reserves(const struct fm_report *r)
{
    const struct fm_memory *memory = &r->p->memory;
    const struct fm_resident *most = NULL;
    for (size_t i = 0; i < memory->residents.len; i++) {
        const struct fm_resident *account = &memory->residents.data[i];
        int64_t reserved = account->parts[FM_RESIDENT_RESERVED];
        if (is_shown(r, account->process) && account->when == FM_RESIDENT_HIGHEST &&
            reserved > account->rss / RESERVES_LEAST &&
            (!most || reserved > most->parts[FM_RESIDENT_RESERVED]))
            most = account;
    }
    if (most)
        show_reserves(r, most);
}

void fm_report_memory_resident(const struct fm_report *r)
{
    bool first = true;
    for (uint32_t i = 0; i < r->p->processes.len; i++) {
        struct accounts all = accounts_of(r, i);
        const struct fm_resident *account = shown_account(&all);
        char number[FM_NUMBER_BYTES];
        if (!account || !is_shown(r, i))
            continue;
        if (!first)
            fputc('\n', r->out);
        first = false;
        show_head(r, &all);
        show_parts(r, &all);
        if (account->untouched > 0)
            fprintf(r->out, "%s more were allocated and never touched, or are swapped out\n",
                    fm_number_bytes(number, account->untouched));
        show_reserves(r, account);
    }
}

/* ---- for programs ---- */

static void add_reserves(struct fm_buffer *out, const struct fm_report *r,
                         const struct fm_resident *account)
{
    const struct fm_memory *memory = &r->p->memory;
    fm_json_add_key(out, "reserved_by");
    fm_buffer_add_char(out, '[');
    for (size_t i = 0; i < memory->reserves.len; i++) {
        const struct fm_reserve *reserve = &memory->reserves.data[i];
        if (reserve->process != account->process || reserve->when != account->when)
            continue;
        if (out->data[out->len - 1] == '}')
            fm_buffer_add_char(out, ',');
        fm_buffer_add_char(out, '{');
        fm_json_add_text_member(out, "library", fm_profile_text(r->p, reserve->library));
        fm_json_add_member(out, "reserved_bytes", reserve->reserved);
        fm_json_add_member(out, "resident_bytes", reserve->resident);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
}

void fm_report_memory_resident_json(const struct fm_report *r, struct fm_buffer *out)
{
    const struct fm_memory *memory = &r->p->memory;
    fm_json_add_key(out, "residents");
    fm_buffer_add_char(out, '[');
    for (size_t i = 0; i < memory->residents.len; i++) {
        const struct fm_resident *account = &memory->residents.data[i];
        if (!is_shown(r, account->process))
            continue;
        if (out->data[out->len - 1] == '}')
            fm_buffer_add_char(out, ',');
        fm_buffer_add_char(out, '{');
        fm_json_add_member(out, "pid", r->p->processes.data[account->process].pid);
        fm_json_add_text_member(out, "when", when_names[account->when]);
        fm_json_add_member(out, "after_ns", since_start(r, account));
        fm_json_add_member(out, "resident_bytes", account->rss);
        fm_json_add_member(out, "untouched_bytes", account->untouched);
        fm_json_add_key(out, "parts");
        fm_buffer_add_char(out, '{');
        for (int part = 0; part < FM_RESIDENT_PARTS; part++)
            fm_json_add_member(out, fm_resident_key((enum fm_resident_part)part),
                               account->parts[part]);
        fm_buffer_add_char(out, '}');
        add_reserves(out, r, account);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
}

void fm_report_memory_resident_csv(const struct fm_report *r)
{
    const struct fm_memory *memory = &r->p->memory;
    fputs("pid,when,after_ns,part,bytes\r\n", r->out);
    for (size_t i = 0; i < memory->residents.len; i++) {
        const struct fm_resident *account = &memory->residents.data[i];
        if (!is_shown(r, account->process))
            continue;
        for (int part = 0; part < FM_RESIDENT_PARTS + 2; part++)
            fprintf(r->out, "%u,%s,%lld,%s,%lld\r\n", r->p->processes.data[account->process].pid,
                    when_names[account->when], (long long)since_start(r, account),
                    part < FM_RESIDENT_PARTS    ? fm_resident_key((enum fm_resident_part)part)
                    : part == FM_RESIDENT_PARTS ? "untouched"
                                                : "resident",
                    (long long)(part < FM_RESIDENT_PARTS    ? account->parts[part]
                                : part == FM_RESIDENT_PARTS ? account->untouched
                                                            : account->rss));
    }
}
