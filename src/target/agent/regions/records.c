/* Records of regions; see records.h. */
#include "target/agent/regions/records.h"

#include <string.h>

#include "target/agent/regions/alone.h"
#include "target/agent/table.h"

#define MOST_REGIONS 50000u /* names made of numbers must not fill the memory */

static struct {
    uint32_t region_count;
    struct fm_agent_table by_name;           /* hash of name and parent → record */
    struct fm_region_record *first, *newest; /* all of them */
    struct fm_region_record *more;           /* for all that have no record of their own, or NULL */
} records;

void fm_region_records_forget(void)
{
    fm_agent_table_release(&records.by_name);
    records.region_count = 0;
    records.first = records.newest = records.more = NULL;
}

const struct fm_region_record *fm_region_records_first(void)
{
    return records.first;
}

static struct fm_region_record *define(struct fm_collector *c, struct fm_region_record *around,
                                       const struct fm_region_name *name)
{
    uint64_t numbers[2] = { records.region_count + 1, around ? around->live->id : 0 };
    struct fm_store_text text = { name->text, name->len };
    struct fm_region_record *record = fm_regions_alloc(sizeof *record);
    if (!record || !fm_store_define(&c->store, FM_LIVE_DEF_REGION, numbers, 2, &text, 1))
        return NULL;
    *record = (struct fm_region_record){
        .live = fm_store_record(&c->store, FM_LIVE_REGIONS, sizeof *record->live),
        .around = around,
        .name = name,
    };
    if (!record->live)
        return NULL;
    record->live->id = ++records.region_count;
    record->live->min_ticks = UINT64_MAX;
    *(records.newest ? &records.newest->next : &records.first) = record;
    records.newest = record;
    return record;
}

/* One record for all that have none of their own. */
static struct fm_region_record *define_more(struct fm_collector *c)
{
    struct fm_region_name *name = fm_region_name_find(FM_REGION_MORE, strlen(FM_REGION_MORE));
    c->store.header->lost[FM_LIVE_LOST_REGIONS]++;
    if (!records.more && name)
        records.more = define(c, NULL, name);
    return records.more;
}

static struct fm_region_record *look_up(struct fm_collector *c, struct fm_region_record *around,
                                        struct fm_region_name *name)
{
    uint64_t key = fm_mix64(name->hash ^ (around ? around->live->id : 0)) | 1;
    struct fm_region_record *record = fm_agent_table_find(&records.by_name, key);
    if (record)
        return record;
    if (records.region_count < MOST_REGIONS)
        record = define(c, around, name);
    if (record && fm_agent_table_set(&records.by_name, key, record))
        return record;
    return define_more(c);
}

struct fm_region_record *fm_region_record_look_up(struct fm_collector *c,
                                                  struct fm_region_record *around,
                                                  struct fm_region_name *name)
{
    struct fm_region_record *record = look_up(c, around, name);
    name->era = c->era;
    name->below = around;
    name->here = record == records.more ? NULL : record;
    return record;
}
