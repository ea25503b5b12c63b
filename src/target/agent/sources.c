/* Source files and generated code; see sources.h. */
#include "target/agent/sources.h"

#include <string.h>
#include <sys/stat.h>

#define MAX_TEXT_BYTES ((size_t)1024 * 1024)
#define MAX_ALL_BYTES  ((size_t)32 * 1024 * 1024)

/* Of each slot: hashes of the files and texts noted in the current store. */
static struct {
    struct fm_agent_table seen;
    size_t text_bytes;
} slots[FM_SLOTS];

static uint64_t hash_text(uint64_t h, struct fm_store_text text)
{
    for (size_t i = 0; i < text.len; i++)
        h = (h ^ (unsigned char)text.bytes[i]) * 0x100000001b3ULL;
    return fm_mix64(h ^ text.len) | 1;
}

/* True the first time, and if it could be remembered. */
static bool first_time(struct fm_collector *c, uint64_t hash)
{
    if (fm_agent_table_find(&slots[c->slot].seen, hash))
        return false;
    return fm_agent_table_set(&slots[c->slot].seen, hash, &slots);
}

static bool is_generated(struct fm_store_text file)
{
    return file.len && file.bytes[0] == '<';
}

void fm_sources_see_file(struct fm_collector *c, struct fm_store_text file)
{
    char path[4096];
    struct stat st;
    if (is_generated(file) || file.len >= sizeof path || !first_time(c, hash_text(1, file)))
        return;
    memcpy(path, file.bytes, file.len);
    path[file.len] = '\0';
    if (stat(path, &st) < 0)
        return;
    /* The record's texts come after its numbers, like everywhere. */
    uint64_t numbers[2] = { (uint64_t)st.st_mtim.tv_sec * 1000000000u +
                                (uint64_t)st.st_mtim.tv_nsec,
                            (uint64_t)st.st_size };
    fm_store_define(&c->store, FM_LIVE_DEF_FILE, numbers, 2, &file, 1);
}

static bool text_of(PyObject *object, struct fm_store_text *ret_text)
{
    Py_ssize_t len = 0;
    const char *bytes = NULL;
    if (object && PyUnicode_Check(object)) {
        bytes = PyUnicode_AsUTF8AndSize(object, &len);
    } else if (object && PyBytes_Check(object)) {
        bytes = PyBytes_AS_STRING(object);
        len = PyBytes_GET_SIZE(object);
    }
    PyErr_Clear();
    *ret_text = (struct fm_store_text){ bytes, (size_t)len };
    return bytes != NULL;
}

void fm_sources_see_compile(struct fm_collector *c, PyObject *args)
{
    struct fm_store_text source, file;
    if (!PyTuple_Check(args) || PyTuple_GET_SIZE(args) < 2)
        return;
    struct fm_raised raised = fm_python_put_aside();
    if (text_of(PyTuple_GET_ITEM(args, 1), &file) && is_generated(file) &&
        text_of(PyTuple_GET_ITEM(args, 0), &source)) {
        if (source.len > MAX_TEXT_BYTES || slots[c->slot].text_bytes + source.len > MAX_ALL_BYTES) {
            c->store.header->lost[FM_LIVE_LOST_SOURCES]++;
        } else if (first_time(c, hash_text(hash_text(2, file), source))) {
            struct fm_store_text texts[2] = { file, source };
            slots[c->slot].text_bytes += source.len;
            fm_store_define(&c->store, FM_LIVE_DEF_SOURCE, NULL, 0, texts, 2);
        }
    }
    fm_python_put_back(raised);
}

void fm_sources_reset(struct fm_collector *c)
{
    fm_agent_table_release(&slots[c->slot].seen);
    slots[c->slot].text_bytes = 0;
}
