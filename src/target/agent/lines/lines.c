/* The lines collector: maps of lines, records, choosing; see lines.h. */
#include "target/agent/lines/lines.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/statements.h"
#include "target/agent/functions.h"
#include "target/agent/hooks/hooks.h"
#include "target/agent/lines/choose.h"

#define MAX_SOURCE_BYTES ((off_t)16 << 20)
#define MAX_LINES        65000 /* of one function: offsets are 16 bits */

/* A source file's statements: for each line the first line of its statement, both from 0. */
struct statements {
    size_t count;
    uint32_t first[];
};

/* By hash of the file's name; a NULL-like marker for files that cannot be read. Shared by all
 * slots. */
static struct fm_agent_table files;
static struct statements no_statements;

/* ---- which lines belong together --------------------------------------------------------- */

static struct statements *read_statements(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    /* Read, not mapped: a file that is cut meanwhile must not kill the program. */
    char *text = MAP_FAILED;
    size_t len = 0;
    ssize_t got = 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size && st.st_size <= MAX_SOURCE_BYTES)
        text = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                    -1, 0);
    while (text != MAP_FAILED && len < (size_t)st.st_size &&
           (got = read(fd, text + len, (size_t)st.st_size - len)) > 0)
        len += (size_t)got;
    close(fd);
    if (text == MAP_FAILED)
        return NULL;
    size_t count = fm_statements_lines(text, len);
    struct statements *s = fm_agent_alloc(sizeof *s + count * sizeof s->first[0]);
    if (s) {
        s->count = count;
        fm_statements_map(text, len, s->first, count);
    }
    munmap(text, (size_t)st.st_size);
    return s;
}

/* The statements of a code's file. Code without a file: every line is a statement of its own. */
static const struct statements *statements_of(PyCodeObject *code)
{
    const char *path = PyUnicode_AsUTF8(code->co_filename);
    uint64_t key = fm_mix64((uint64_t)PyObject_Hash(code->co_filename)) | 1;
    PyErr_Clear();
    struct statements *s = fm_agent_table_find(&files, key);
    if (s)
        return s;
    s = path && path[0] != '<' ? read_statements(path) : NULL;
    if (!s)
        s = &no_statements;
    fm_agent_table_set(&files, key, s);
    return s;
}

static unsigned read_varint(const uint8_t **at, const uint8_t *end)
{
    unsigned value = 0;
    for (unsigned shift = 0; *at < end && shift < 30; shift += 6) {
        uint8_t byte = *(*at)++;
        value |= (unsigned)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value;
}

/* The last line of a code object, from its location table (PEP 657, the same from 3.11 to 3.15). */
static int last_line(PyCodeObject *code)
{
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(code->co_linetable);
    const uint8_t *end = at + PyBytes_GET_SIZE(code->co_linetable);
    int line = code->co_firstlineno, last = line;
    while (at < end) {
        unsigned kind = *at++ >> 3 & 15;
        if (kind == 13 || kind == 14) {
            unsigned zigzag = read_varint(&at, end);
            line += zigzag & 1 ? -(int)(zigzag >> 1) : (int)(zigzag >> 1);
        } else if (kind >= 10 && kind <= 12) {
            line += (int)kind - 10;
        }
        while (at < end && !(*at & 0x80))
            at++; /* columns and end lines: an entry begins with the high bit set */
        if (line > last)
            last = line;
    }
    return last;
}

static struct fm_func_lines *new_map(const struct fm_collector *c, PyCodeObject *code)
{
    int first = code->co_firstlineno, count = last_line(code) - first + 1;
    if (first < 0 || count < 1 || count > MAX_LINES)
        return NULL;
    struct fm_func_lines *map = fm_agent_alloc(sizeof *map);
    uint16_t *statement = fm_agent_alloc((size_t)count * sizeof *statement);
    struct fm_live_line **records = fm_agent_alloc((size_t)count * sizeof *records);
    if (!map || !statement || !records)
        return NULL;
    const struct statements *s = c->lines_split ? &no_statements : statements_of(code);
    for (int i = 0; i < count; i++) {
        size_t line = (size_t)(first + i) - 1; /* from 0, in the file */
        int begins = line < s->count ? (int)s->first[line] + 1 : first + i;
        /* A lambda inside a statement that began before it keeps its own first line. */
        statement[i] = (uint16_t)(begins > first ? begins - first : 0);
    }
    *map = (struct fm_func_lines){ first, count, statement, records, false, false };
    return map;
}

/* ---- choosing ---------------------------------------------------------------------------- */

struct fm_func_lines *fm_lines_of(struct fm_collector *c, struct fm_func *f, PyCodeObject *code)
{
    if (__builtin_expect(f->lines_known, 1))
        return f->lines;
    uint64_t since = fm_clock_ticks();
    struct fm_raised raised = fm_python_put_aside();
    f->lines_known = true;
    enum fm_chosen chosen =
        c->lines_patterns[0] ? fm_choose(c->lines_patterns, code) : FM_CHOSEN_NOT;
    if (chosen)
        f->lines = new_map(c, code);
    if (f->lines)
        f->lines->marked = chosen == FM_CHOSEN_BY_NAME;
    else if (c->lines_patterns[0] && !f->id && fm_choose_is_mine(code))
        fm_function_define(c, f, code); /* so that "nothing matches" can name what is near */
    fm_python_put_back(raised);
    fm_collector_charge(c, since);
    return f->lines;
}

/* The first function is marked: from now on there are lines. */
static int stop_waiting(struct fm_collector *c)
{
    if (!c->lines_waiting || !c->store.header)
        return 0;
    c->lines_waiting = false;
    c->lines_on = c->lines_of_memory = true;
    c->store.header->flags |= FM_LIVE_LINES_ON;
    return fm_collector_start(c);
}

int fm_lines_mark(struct fm_collector *c, PyCodeObject *code)
{
    if (stop_waiting(c) < 0)
        return -1;
    struct fm_func *f = fm_function_of_code(c, code);
    if (f && !f->lines)
        f->lines = new_map(c, code);
    if (!f || !f->lines) {
        PyErr_NoMemory();
        return -1;
    }
    f->lines->marked = f->lines_known = true;
    if (!c->marked && !(c->marked = PyDict_New()))
        return -1;
    PyObject *address = PyLong_FromVoidPtr(code);
    int rc = address ? PyDict_SetItem(c->marked, address, (PyObject *)code) : -1;
    Py_XDECREF(address);
    return rc == 0 && c->hooked ? fm_hooks_mark(c, code) : rc;
}

/* ---- records ----------------------------------------------------------------------------- */

void fm_lines_reset(struct fm_func *f)
{
    f->lines->defined = false;
    memset(f->lines->records, 0, (size_t)f->lines->count * sizeof *f->lines->records);
}

struct fm_live_line *fm_lines_record(struct fm_collector *c, struct fm_func *f, int offset)
{
    uint64_t since = fm_clock_ticks();
    if (!f->id)
        return NULL;
    if (!f->lines->defined) {
        uint64_t numbers[2] = { f->id, f->lines->marked ? FM_LIVE_LINES_MARKED : 0 };
        f->lines->defined = fm_store_define(&c->store, FM_LIVE_DEF_LINES, numbers, 2, NULL, 0);
    }
    struct fm_live_line *line =
        fm_store_line(&c->store, f->id, (uint32_t)(f->lines->first + offset));
    if (!line)
        c->store.header->lost[FM_LIVE_LOST_CONTEXTS]++;
    f->lines->records[offset] = line;
    fm_collector_charge(c, since);
    return line;
}

void fm_lines_halve(struct fm_live_line *line)
{
    for (int i = 0; i < FM_LIVE_LINE_BUCKETS; i++)
        line->buckets[i] /= 2;
}

uintptr_t fm_lines_abroad(struct fm_agent_thread *t, const struct fm_live_line *line, int change)
{
    uint64_t key = (uint64_t)(uintptr_t)line;
    uintptr_t count = (uintptr_t)fm_agent_table_find(&t->abroad, key) + (uintptr_t)change;
    if (change && fm_agent_table_set(&t->abroad, key, (void *)count))
        t->abroad_open += (uintptr_t)change;
    return count;
}

bool fm_lines_make_room(struct fm_agent_thread *t, uint32_t frames)
{
    size_t need = frames;
    if (t->lines_cap >= need)
        return true;
    size_t bytes = need * sizeof *t->lines;
    struct fm_line_frame *larger =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (larger == MAP_FAILED)
        return false;
    if (t->lines) {
        memcpy(larger, t->lines, t->lines_cap * sizeof *t->lines);
        munmap(t->lines, t->lines_cap * sizeof *t->lines);
    }
    t->lines = larger;
    t->lines_cap = need;
    return true;
}
