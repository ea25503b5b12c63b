/*
 * NVTX: being the tool that a program's NVTX (version 2 and 3) loads, by NVTX_INJECTION64_PATH.
 *
 * Every library that includes NVTX's headers has function pointers of its own. At its first call it loads this library
 * and calls InitializeInjectionNvtx2() with a function that gives out a table of where these pointers are, by
 * module and number; what is put there is called from then on. Push and pop are regions, start and end spans,
 * marks instants. Domains share one timeline.
 *
 * Facts of NVTX relied on: the numbers of its functions and the layout of event attributes, which are fixed by its
 * interface version.
 */
#include <fathom.h>
#include <stdlib.h>
#include <string.h>

#include "target/notify/spans.h"

enum { MODULE_CORE = 1, MODULE_CORE2 = 5 };
enum { EXPORT_CALLBACKS = 1 };
enum { MESSAGE_ASCII = 1, MESSAGE_WIDE = 2, MESSAGE_REGISTERED = 3 };

/* nvtxEventAttributes_t */
struct nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message;
};

typedef void function(void);
struct nvtx_callbacks {
    size_t size;
    int (*get_table)(int module, function ****ret_table, unsigned int *ret_size);
};

/* What a registered string is to us; NVTX never frees them. */
struct nvtx_text {
    char bytes[1];
};

static const char *name_of(const struct nvtx_attributes *attributes, char out[FM_NOTIFY_TEXT])
{
    if (!attributes || attributes->size < sizeof *attributes || !attributes->message)
        return "(no name)";
    switch (attributes->message_type) {
    case MESSAGE_ASCII:
        return attributes->message;
    case MESSAGE_WIDE:
        return fm_notify_narrow(attributes->message, out);
    case MESSAGE_REGISTERED:
        return ((const struct nvtx_text *)attributes->message)->bytes;
    default:
        return "(no name)";
    }
}

/* Depths are not known here: 0 is what NVTX gives for the outermost, and negative for "no tool". */
static int push(const struct nvtx_attributes *attributes)
{
    char out[FM_NOTIFY_TEXT];
    fathom_region_begin(name_of(attributes, out));
    return 0;
}

static int push_ascii(const char *name)
{
    fathom_region_begin(name);
    return 0;
}

static int push_wide(const wchar_t *name)
{
    char out[FM_NOTIFY_TEXT];
    fathom_region_begin(fm_notify_narrow(name, out));
    return 0;
}

static int pop(void)
{
    fathom_region_end();
    return 0;
}

static uint64_t start(const struct nvtx_attributes *attributes)
{
    char out[FM_NOTIFY_TEXT];
    return fm_notify_span_begin(name_of(attributes, out));
}

static uint64_t start_ascii(const char *name)
{
    return fm_notify_span_begin(name);
}

static uint64_t start_wide(const wchar_t *name)
{
    char out[FM_NOTIFY_TEXT];
    return fm_notify_span_begin(fm_notify_narrow(name, out));
}

static void end(uint64_t number)
{
    fm_notify_span_end(number);
}

static void mark(const struct nvtx_attributes *attributes)
{
    char out[FM_NOTIFY_TEXT];
    fathom_instant(name_of(attributes, out));
}

static void mark_ascii(const char *name)
{
    fathom_instant(name);
}

static void mark_wide(const wchar_t *name)
{
    char out[FM_NOTIFY_TEXT];
    fathom_instant(fm_notify_narrow(name, out));
}

/* ---- domains ----------------------------------------------------------------------------- */

static int domain_push(void *domain, const struct nvtx_attributes *attributes)
{
    (void)domain;
    return push(attributes);
}

static int domain_pop(void *domain)
{
    (void)domain;
    return pop();
}

static uint64_t domain_start(void *domain, const struct nvtx_attributes *attributes)
{
    (void)domain;
    return start(attributes);
}

static void domain_end(void *domain, uint64_t number)
{
    (void)domain;
    end(number);
}

static void domain_mark(void *domain, const struct nvtx_attributes *attributes)
{
    (void)domain;
    mark(attributes);
}

static void *keep_text(const char *text)
{
    return text ? strdup(text) : NULL;
}

static void *register_ascii(void *domain, const char *text)
{
    (void)domain;
    return keep_text(text);
}

static void *register_wide(void *domain, const wchar_t *text)
{
    char out[FM_NOTIFY_TEXT];
    (void)domain;
    return keep_text(fm_notify_narrow(text, out));
}

/* A domain is a handle that is not NULL. */
static void *domain_create(const void *name)
{
    static char some;
    (void)name;
    return &some;
}

static void domain_destroy(void *domain)
{
    (void)domain;
}

/* ---- putting them in place --------------------------------------------------------------- */

struct nvtx_place {
    unsigned int number;
    function *function;
};

static const struct nvtx_place core[] = {
    { 1, (function *)mark },       { 2, (function *)mark_ascii },  { 3, (function *)mark_wide },
    { 4, (function *)start },      { 5, (function *)start_ascii }, { 6, (function *)start_wide },
    { 7, (function *)end },        { 8, (function *)push },        { 9, (function *)push_ascii },
    { 10, (function *)push_wide }, { 11, (function *)pop },
};

static const struct nvtx_place core2[] = {
    { 1, (function *)domain_mark },    { 2, (function *)domain_start },
    { 3, (function *)domain_end },     { 4, (function *)domain_push },
    { 5, (function *)domain_pop },     { 10, (function *)register_ascii },
    { 11, (function *)register_wide }, { 12, (function *)domain_create },
    { 13, (function *)domain_create }, { 14, (function *)domain_destroy },
};

static void fill(const struct nvtx_callbacks *callbacks, int module,
                 const struct nvtx_place *places, size_t count)
{
    function ***slots = NULL;
    unsigned int size = 0;
    if (!callbacks->get_table(module, &slots, &size) || !slots)
        return;
    for (size_t i = 0; i < count; i++)
        if (places[i].number < size && slots[places[i].number])
            *slots[places[i].number] = places[i].function;
}

FM_NOTIFY_EXPORT int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id));
FM_NOTIFY_EXPORT int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id))
{
    const struct nvtx_callbacks *callbacks =
        get_export_table ? get_export_table(EXPORT_CALLBACKS) : NULL;
    if (!callbacks || callbacks->size < sizeof *callbacks || !callbacks->get_table)
        return 0;
    fill(callbacks, MODULE_CORE, core, sizeof core / sizeof *core);
    fill(callbacks, MODULE_CORE2, core2, sizeof core2 / sizeof *core2);
    return 1;
}
