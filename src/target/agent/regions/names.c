/* Names of regions; see names.h. */
#include "target/agent/regions/names.h"

#include <stdbool.h>
#include <string.h>

#include "target/agent/regions/alone.h"
#include "target/agent/table.h"

#define PLACES         1024u       /* of the table by address; a power of two */
#define MOST_BYTES     (16u << 20) /* of all texts */
#define LONGEST_OBJECT 65536       /* characters: no longer text is kept alive for its address */

static struct {
    struct fm_agent_table by_hash;
    struct fm_region_name *more; /* what those share that have none of their own */
    uint32_t count;
    size_t bytes;
    struct {
        PyObject *text; /* a reference */
        struct fm_region_name *name;
    } by_address[PLACES];
} names;

static uint64_t hash_text(const char *text, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return fm_mix64(hash) | 1;
}

static struct fm_region_name *make(const char *text, size_t len, uint64_t hash)
{
    struct fm_region_name *name = fm_regions_alloc(sizeof *name + len);
    if (!name)
        return NULL;
    *name = (struct fm_region_name){ .hash = hash, .len = (uint32_t)len };
    memcpy(name->text, text, len);
    names.count++;
    names.bytes += len;
    return name;
}

static struct fm_region_name *more(void)
{
    if (!names.more)
        names.more = make(FM_REGION_MORE, strlen(FM_REGION_MORE),
                          hash_text(FM_REGION_MORE, strlen(FM_REGION_MORE)));
    return names.more;
}

struct fm_region_name *fm_region_name_find(const char *text, size_t len)
{
    if (len > FM_REGION_NAME_MAX)
        len = FM_REGION_NAME_MAX;
    uint64_t hash = hash_text(text, len);
    struct fm_region_name *name = fm_agent_table_find(&names.by_hash, hash);
    if (name)
        return name;
    if (names.count >= FM_REGION_NAMES || names.bytes + len > MOST_BYTES)
        return more();
    name = make(text, len, hash);
    return name && fm_agent_table_set(&names.by_hash, hash, name) ? name : more();
}

static struct fm_region_name *find_held(const char *text, Py_ssize_t len)
{
    fm_regions_hold();
    struct fm_region_name *name = fm_region_name_find(text, (size_t)len);
    fm_regions_release();
    return name;
}

/* By its content: what is no UTF-8 (half of a pair) is written out. */
static struct fm_region_name *find_object(PyObject *text)
{
    Py_ssize_t len;
    const char *utf8 =
        PyUnicode_IS_COMPACT_ASCII(text) ? PyUnicode_AsUTF8AndSize(text, &len) : NULL;
    if (utf8)
        return find_held(utf8, len);
    struct fm_raised raised = fm_python_put_aside();
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    struct fm_region_name *name =
        bytes ? find_held(PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes)) : NULL;
    Py_XDECREF(bytes);
    PyErr_Clear();
    fm_python_put_back(raised);
    return name;
}

static struct fm_region_name *find_and_keep(PyObject *text, size_t place)
{
    struct fm_region_name *name = find_object(text);
    if (!name || PyUnicode_GET_LENGTH(text) > LONGEST_OBJECT)
        return name;
    PyObject *old = names.by_address[place].text;
    names.by_address[place].text = Py_NewRef(text);
    names.by_address[place].name = name;
    Py_XDECREF(old);
    return name;
}

struct fm_region_name *fm_region_name_of(PyObject *text)
{
    size_t place = ((uintptr_t)text >> 4 ^ (uintptr_t)text >> 14) & (PLACES - 1);
    if (__builtin_expect(names.by_address[place].text == text, 1))
        return names.by_address[place].name;
    return find_and_keep(text, place);
}
