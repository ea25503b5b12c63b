"""Annotations of NVTX and ITT are regions: libfathom_notify.so does what their protocols ask of a tool.

The programs here do what the part of NVTX and of ittnotify does that is linked into programs: load the library that a
variable names and let it fill in a table of functions. Where the packages nvtx and ittapi are installed they are used, too.
"""

import os
import subprocess
import textwrap

import pytest

from conftest import PACKAGE
from launch import COMPILER

LIBRARY = os.path.join(PACKAGE, "fathom", "libfathom_notify.so")

NVTX = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

typedef void function(void);
struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message;
};
static function *core[16], *core2[16];
static function **core_table[16], **core2_table[16];

static int get_table(int module, function ****table, unsigned int *size)
{
    if (module != 1 && module != 5)
        return 0;
    *table = module == 1 ? core_table : core2_table;
    *size = 16;
    return 1;
}

static const struct { size_t size; int (*get)(int, function ****, unsigned int *); } callbacks = { sizeof callbacks, get_table };

static const void *get_export_table(uint32_t id)
{
    return id == 1 ? &callbacks : NULL;
}

int begin(void)
{
    for (int i = 1; i < 16; i++)
        core_table[i] = &core[i], core2_table[i] = &core2[i];
    void *tool = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY);
    int (*init)(const void *(*)(uint32_t)) = (int (*)(const void *(*)(uint32_t)))dlsym(tool, "InitializeInjectionNvtx2");
    return init(get_export_table);
}

void work(void)
{
    void *domain = ((void *(*)(const char *))core2[12])("my domain");
    void *text = ((void *(*)(void *, const char *))core2[10])(domain, "registered");
    struct attributes registered = { 3, sizeof registered, 0, 0, 0, 0, 0, 0, 3, text };
    struct attributes wide = { 3, sizeof wide, 0, 0, 0, 0, 0, 0, 2, L"gr\u00f6\u00dfe" };
    struct attributes plain = { 3, sizeof plain, 0, 0, 0, 0, 0, 0, 1, "plain" };
    struct attributes none = { 3, sizeof none, 0, 0, 0, 0, 0, 0, 0, NULL };
    ((int (*)(void *, const void *))core2[4])(domain, &registered);
    ((int (*)(const void *))core[8])(&wide);
    ((int (*)(void))core[11])();
    ((int (*)(const void *))core[8])(&none);
    ((int (*)(void))core[11])();
    ((int (*)(void *))core2[5])(domain);
    ((int (*)(const char *))core[9])("ascii");
    ((int (*)(const wchar_t *))core[10])(L"wide");
    ((int (*)(void))core[11])();
    ((int (*)(void))core[11])();
    ((int (*)(void))core[11])(); /* once too often */
    uint64_t one = ((uint64_t (*)(const char *))core[5])("span"), two = ((uint64_t (*)(const void *))core[4])(&plain);
    ((void (*)(uint64_t))core[7])(one);
    ((void (*)(void *, uint64_t))core2[3])(domain, two);
    ((void (*)(uint64_t))core[7])(12345);
    ((void (*)(const char *))core[2])("mark");
}
"""

ITT = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct id { unsigned long long d1, d2, d3; };
struct domain { volatile int flags; };
static void none(void) {}

static struct domain *(*domain_create)(const char *);
static void *(*string_handle_create)(const char *);
static void (*task_begin)(struct domain *, struct id, struct id, void *);
static void (*task_end)(struct domain *);
static void (*task_begin_overlapped)(struct domain *, struct id, struct id, void *);
static void (*task_end_overlapped)(struct domain *, struct id);
static int (*event_create)(const char *, int);
static int (*event_start)(int), (*event_end)(int);
static void (*unknown)(void);

static struct { const char *name; void **place; void *first, *none; int group; } functions[] = {
#define F(name) { "__itt_" #name, (void **)&name, (void *)none, (void *)none, 1 }
    F(domain_create), F(string_handle_create), F(task_begin), F(task_end), F(task_begin_overlapped),
    F(task_end_overlapped), F(event_create), F(event_start), F(event_end), F(unknown), { NULL, NULL, NULL, NULL, 0 } };

static struct {
    unsigned char magic[8];
    unsigned long version[3];
    volatile long initialized, mutex_initialized, counter;
    pthread_mutex_t mutex;
    void *library, *on_error;
    const char **path;
    void *functions;
} state = { { 0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30 }, { 3, 25, 0 }, 0, 0, 0, PTHREAD_MUTEX_INITIALIZER, NULL,
            NULL, NULL, functions };

int begin(void)
{
    void *tool = dlopen(getenv("INTEL_LIBITTNOTIFY64"), RTLD_LAZY);
    void (*init)(void *, int) = (void (*)(void *, int))dlsym(tool, "__itt_api_init");
    init(&state, -1);
    return unknown == none;
}

void work(void)
{
    struct domain *domain = domain_create("my domain");
    struct id no = { 0, 0, 0 }, one = { 1, 0, 0 }, two = { 2, 0, 0 };
    void *outer = string_handle_create("outer"), *inner = string_handle_create("inner");
    if (!domain->flags)
        abort();
    task_begin(domain, no, no, outer);
    task_begin(domain, no, no, inner);
    task_end(domain);
    task_end(domain);
    task_begin_overlapped(domain, one, no, outer);
    task_begin_overlapped(domain, two, no, string_handle_create("overlapped"));
    task_end_overlapped(domain, one);
    task_end_overlapped(domain, two);
    task_end_overlapped(domain, no);
    int event = event_create("event and more", 5);
    event_start(event);
    event_end(event);
}
"""

COUNTED = """
import sys
import fathom
from fathom._summary import _rows
fathom.summarize()
{body}
rows = _rows()
def path(row): return (path(rows[row.around]) + "/" if row.around >= 0 else "") + row.name
print(sorted((path(row), row.count, row.open) for row in rows))
"""


def counted(python, body, **env):
    script = COUNTED.format(body=textwrap.dedent(body))
    done = subprocess.run([python, "-c", script], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": PACKAGE, "NVTX_INJECTION64_PATH": LIBRARY,
                               "INTEL_LIBITTNOTIFY64": LIBRARY, **env})
    assert done.returncode == 0, done.stderr
    return eval(done.stdout)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for name, text in (("nvtx", NVTX), ("itt", ITT)):
        (folder / f"{name}.c").write_text(text)
        done = subprocess.run([*COMPILER, "-shared", "-fPIC", "-O1", str(folder / f"{name}.c"), "-o",
                               str(folder / f"{name}.so"), "-ldl", "-pthread"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder


def test_nvtx(python, programs):
    for kind in ("CDLL", "PyDLL"):
        rows = counted(python, f"""
            import ctypes
            program = ctypes.{kind}({str(programs / "nvtx.so")!r})
            assert program.begin() == 1
            program.work()
            """)
        assert rows == [("ascii", 1, 0), ("ascii/wide", 1, 0), ("plain", 1, 0), ("registered", 1, 0),
                        ("registered/(no name)", 1, 0), ("registered/größe", 1, 0), ("span", 1, 0)]


def test_itt(python, programs):
    rows = counted(python, f"""
        import ctypes
        program = ctypes.CDLL({str(programs / "itt.so")!r})
        assert program.begin() == 1
        program.work()
        """)
    assert rows == [("event", 1, 0), ("outer", 2, 0), ("outer/inner", 1, 0), ("overlapped", 1, 0)]


def test_nothing_is_recorded_when_nobody_records(python, programs):
    script = f"import ctypes\nfor name in ('nvtx', 'itt'):\n p = ctypes.CDLL({str(programs)!r} + '/' + name + '.so'); p.begin(); p.work()"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True,
                          env={**os.environ, "NVTX_INJECTION64_PATH": LIBRARY, "INTEL_LIBITTNOTIFY64": LIBRARY})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_library_is_where_the_package_says(inside):
    assert inside("import os; result = os.path.exists(fathom.notify_library())")


def is_installed(python, name):
    return subprocess.run([python, "-c", f"import {name}"], capture_output=True).returncode == 0


def test_the_package_nvtx(python):
    if not is_installed(python, "nvtx"):
        pytest.skip("the package nvtx is not installed for this Python")
    rows = counted(python, """
        import nvtx
        with nvtx.annotate("outer"):
            with nvtx.annotate("inner", domain="d", color="red"):
                pass
        nvtx.end_range(nvtx.start_range("span"))
        """)
    assert rows == [("outer", 1, 0), ("outer/inner", 1, 0), ("span", 1, 0)]


def test_the_package_ittapi(python):
    if not is_installed(python, "ittapi"):
        pytest.skip("the package ittapi is not installed for this Python")
    rows = counted(python, """
        import ittapi
        with ittapi.task("outer"):
            with ittapi.task("inner"):
                pass
        with ittapi.task("span", overlapped=True):
            pass
        """)
    assert rows == [("outer", 1, 0), ("outer/inner", 1, 0), ("span", 1, 0)]
