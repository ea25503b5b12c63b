/*
 * Regions of C, C++, Cython and Fortran code in Fathom's recordings: what fathom.region is in Python.
 *
 *     #include <fathom.h>
 *
 *     fathom_region_begin("assembly");         // nests, in each thread for itself; with or without the GIL
 *     …
 *     fathom_region_end();
 *
 *     { FATHOM_REGION("solve"); … }            // until the end of the block (in C++: fathom_region r("solve");)
 *
 *     fathom_span span = fathom_span_begin("request");   // may end in another thread
 *     fathom_span_end(span);
 *
 *     fathom_counter("queue", 17);             // a number that changes over time
 *     fathom_instant("restart");               // something happened now
 *
 * Nothing is linked, and while nothing is recorded each call tests one byte. Names are UTF-8, are copied when first
 * seen, and must end with a zero. Fortran, which cannot include this, calls functions: compile one C file with
 * FATHOM_FUNCTIONS defined (docs/regions.md). Define FATHOM_OFF to leave everything out.
 *
 * How it works. All libraries of a process that include this share one variable: its symbol is unique in the process
 * (STB_GNU_UNIQUE), however they were loaded. Fathom's agent fills it in when it records. A library with such a
 * symbol is not unloaded by dlclose(). An executable has to be linked with -rdynamic to take part.
 */
#ifndef FATHOM_H
#define FATHOM_H

#if !defined(FATHOM_OFF) && defined(__GNUC__) && defined(__linux__)
#define FATHOM_ON 1
#else
#define FATHOM_ON 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    void *visit; /* NULL: nothing was recorded when it began */
    unsigned long long serial;
    unsigned int era;
} fathom_span;

#if FATHOM_ON

/* Filled in by the agent, `recording` last. Only ever added to at its end. */
struct fathom_hooks {
    unsigned char recording; /* 0: nothing below may be called */
    void (*region_begin)(const char *name);
    void (*region_end)(void);
    void (*span_begin)(const char *name, fathom_span *span);
    void (*span_end)(const fathom_span *span);
    void (*counter)(const char *name, double value);
    void (*instant)(const char *name);
    void *reserved[8];
};

__asm__(".ifndef fathom_hooks_1\n"
        ".pushsection .bss.fathom_hooks_1,\"awG\",%nobits,fathom_hooks_1,comdat\n"
        ".weak fathom_hooks_1\n"
        ".type fathom_hooks_1,%gnu_unique_object\n"
        ".size fathom_hooks_1,128\n"
        ".balign 64\n"
        "fathom_hooks_1:\n"
        ".zero 128\n"
        ".popsection\n"
        ".endif\n");
extern struct fathom_hooks fathom_hooks_1 __attribute__((visibility("default")));

static inline void fathom_region_begin(const char *name)
{
    if (__builtin_expect(fathom_hooks_1.recording, 0))
        fathom_hooks_1.region_begin(name);
}

static inline void fathom_region_end(void)
{
    if (__builtin_expect(fathom_hooks_1.recording, 0))
        fathom_hooks_1.region_end();
}

static inline fathom_span fathom_span_begin(const char *name)
{
    fathom_span span = { 0, 0, 0 };
    if (__builtin_expect(fathom_hooks_1.recording, 0))
        fathom_hooks_1.span_begin(name, &span);
    return span;
}

static inline void fathom_span_end(fathom_span span)
{
    if (__builtin_expect(span.visit != 0, 0))
        fathom_hooks_1.span_end(&span);
}

static inline void fathom_counter(const char *name, double value)
{
    if (__builtin_expect(fathom_hooks_1.recording, 0))
        fathom_hooks_1.counter(name, value);
}

static inline void fathom_instant(const char *name)
{
    if (__builtin_expect(fathom_hooks_1.recording, 0))
        fathom_hooks_1.instant(name);
}

#else

static inline void fathom_region_begin(const char *name)
{
    (void)name;
}
static inline void fathom_region_end(void)
{
}
static inline fathom_span fathom_span_begin(const char *name)
{
    fathom_span span = { 0, 0, 0 };
    (void)name;
    return span;
}
static inline void fathom_span_end(fathom_span span)
{
    (void)span;
}
static inline void fathom_counter(const char *name, double value)
{
    (void)name, (void)value;
}
static inline void fathom_instant(const char *name)
{
    (void)name;
}

#endif

/* For languages that call functions: define FATHOM_FUNCTIONS in one C file. */
#ifdef FATHOM_FUNCTIONS
void fathom_begin(const char *name);
void fathom_begin(const char *name)
{
    fathom_region_begin(name);
}
void fathom_end(void);
void fathom_end(void)
{
    fathom_region_end();
}
void fathom_count(const char *name, double value);
void fathom_count(const char *name, double value)
{
    fathom_counter(name, value);
}
void fathom_mark(const char *name);
void fathom_mark(const char *name)
{
    fathom_instant(name);
}
#endif

#ifdef __cplusplus
}

class fathom_region
{
  public:
    explicit fathom_region(const char *name)
    {
        fathom_region_begin(name);
    }
    ~fathom_region()
    {
        fathom_region_end();
    }
    fathom_region(const fathom_region &) = delete;
    fathom_region &operator=(const fathom_region &) = delete;
};
#define FATHOM_JOIN_(a, b)  a##b
#define FATHOM_JOIN(a, b)   FATHOM_JOIN_(a, b)
#define FATHOM_REGION(name) fathom_region FATHOM_JOIN(fathom_region_, __LINE__)(name)

#elif defined(__GNUC__)

static inline void fathom_region_leave_block(const char *unused)
{
    (void)unused;
    fathom_region_end();
}
#define FATHOM_JOIN_(a, b) a##b
#define FATHOM_JOIN(a, b)  FATHOM_JOIN_(a, b)
#define FATHOM_REGION(name)                                                                        \
    char FATHOM_JOIN(fathom_region_, __LINE__)                                                     \
        __attribute__((cleanup(fathom_region_leave_block), unused)) = 0;                           \
    fathom_region_begin(name)

#endif

#endif
