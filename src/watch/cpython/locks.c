/* Locks, who waits and who holds; see locks.h. */
#include "watch/cpython/locks.h"

#include <stdio.h>
#include <string.h>

enum {
    NEWEST_FRAMES = 4,   /* where the waiting thread has its lock */
    HOLDER_FRAMES = 200, /* where a holder may have it */
    MAX_ATTRIBUTES = 64,
    MAX_GLOBALS = 20000,
    SEMAPHORE_BYTES = 32, /* sizeof(sem_t) on 64-bit Linux */
};

/* `with` keeps a bound __exit__ on the stack; since 3.14 the function, and above it what it is
 * called with. */
static bool binds_exit(const struct fm_heap *t)
{
    return fm_layout_minor(t->layout) < 14;
}

struct kind {
    bool recursive;
    bool mutex; /* not a semaphore; either is the first field */
};

/* Of a mutex there is that alone, of an RLock's its owner and level; of a semaphore there is the
 * pointer, and two or three more words. */
static bool lock_kind(const struct fm_heap *t, fm_addr at, struct kind *ret)
{
    char name[32];
    fm_addr type = fm_object_type(t, at);
    if (!fm_type_name(t, type, name, sizeof name))
        return false;
    ret->recursive = strcmp(name, "_thread.RLock") == 0;
    if (!ret->recursive && strcmp(name, "_thread.lock") != 0)
        return false;
    uint64_t size =
        fm_remote_pointer(t->remote, type + t->layout->type_name + 8); /* tp_basicsize */
    ret->mutex = size == t->layout->object_size + (ret->recursive ? 24u : 8u);
    return true;
}

static bool is_blocked_on(const struct fm_heap *t, fm_addr at, fm_addr futex)
{
    struct kind kind;
    if (!lock_kind(t, at, &kind) || kind.mutex)
        return false;
    fm_addr semaphore = fm_remote_pointer(t->remote, at + t->layout->object_size);
    return semaphore && futex - semaphore < SEMAPHORE_BYTES;
}

/* m_self of a bound method of C, im_self of one of Python. */
static fm_addr bound_self(const struct fm_heap *t, fm_addr at, const char *type)
{
    if (strcmp(type, "builtin_function_or_method") != 0 && strcmp(type, "method") != 0)
        return 0;
    return fm_remote_pointer(t->remote, at + t->layout->object_size + 8);
}

/* ---- finding the lock ---- */

static fm_addr lock_in_attributes(const struct fm_heap *t, fm_addr at, fm_addr futex)
{
    struct fm_items items = { 0 };
    fm_addr found = 0;
    fm_object_attributes(t, at, MAX_ATTRIBUTES, &items);
    for (size_t i = 0; i < items.len && !found; i++) {
        if (is_blocked_on(t, items.data[i].value, futex))
            found = items.data[i].value;
    }
    fm_vec_release(&items);
    return found;
}

static fm_addr lock_behind(const struct fm_heap *t, fm_addr object, fm_addr futex)
{
    char type[64];
    if (!object || !fm_type_name(t, fm_object_type(t, object), type, sizeof type))
        return 0;
    if (is_blocked_on(t, object, futex))
        return object;
    fm_addr self = bound_self(t, object, type);
    if (self)
        return is_blocked_on(t, self, futex) ? self : lock_in_attributes(t, self, futex);
    if (strcmp(type, "cell") == 0)
        return lock_behind(t, fm_remote_pointer(t->remote, object + t->layout->object_size), futex);
    return fm_type_flags(t, fm_object_type(t, object)) & FM_TYPE_HEAP
               ? lock_in_attributes(t, object, futex)
               : 0;
}

static fm_addr lock_by_search(const struct fm_heap *t, fm_addr futex,
                              const struct fm_stack *waiting)
{
    fm_addr found = 0;
    for (size_t i = 0; i < waiting->len && i < NEWEST_FRAMES && !found; i++) {
        struct fm_frame_slots slots;
        if (!fm_frame_slots(t, &waiting->data[i], &slots))
            continue;
        for (size_t k = slots.slots.len; k-- > 0 && !found;)
            found = lock_behind(t, slots.slots.data[k], futex);
        fm_frame_slots_release(&slots);
    }
    return found;
}

/* Beside its semaphore a parked thread notes the address on which it waits: that of a PyMutex
 * inside the lock. */
static fm_addr lock_by_parking(const struct fm_heap *t, fm_addr futex)
{
    struct kind kind;
    fm_addr at = fm_remote_pointer(t->remote, futex - 8) - t->layout->object_size;
    return at & 7 || !lock_kind(t, at, &kind) || !kind.mutex ? 0 : at;
}

/* ---- its name ---- */

static bool name_of_attribute(const struct fm_heap *t, const struct fm_variable *v, fm_addr lock,
                              char *into, size_t cap)
{
    struct fm_items items = { 0 };
    char name[64];
    bool found = false;
    if (!(fm_type_flags(t, fm_object_type(t, v->value)) & FM_TYPE_HEAP))
        return false;
    fm_object_attributes(t, v->value, MAX_ATTRIBUTES, &items);
    for (size_t i = 0; i < items.len && !found; i++) {
        found =
            items.data[i].value == lock && fm_object_text(t, items.data[i].key, name, sizeof name);
        if (found)
            snprintf(into, cap, "%s.%s", v->name, name);
    }
    fm_vec_release(&items);
    return found;
}

static bool name_in_globals(const struct fm_heap *t, const struct fm_stack_frame *frame,
                            fm_addr lock, char *into, size_t cap)
{
    struct fm_items items = { 0 };
    bool found = false;
    fm_dict_items(t, fm_frame_globals(t, frame), MAX_GLOBALS, &items);
    for (size_t i = 0; i < items.len && !found; i++)
        found = items.data[i].value == lock && fm_object_text(t, items.data[i].key, into, cap);
    fm_vec_release(&items);
    return found;
}

static void name_lock(const struct fm_heap *t, const struct fm_stack *waiting, struct fm_lock *l)
{
    struct fm_variables variables = { 0 };
    bool found = false;
    for (size_t i = 0; i < waiting->len && i < NEWEST_FRAMES && !found; i++) {
        fm_frame_variables(t, &waiting->data[i], &variables);
        for (size_t k = 0; k < variables.len && !found; k++) {
            found = variables.data[k].value == l->at;
            if (found)
                snprintf(l->name, sizeof l->name, "%s", variables.data[k].name);
            else
                found = name_of_attribute(t, &variables.data[k], l->at, l->name, sizeof l->name);
        }
        found = found || name_in_globals(t, &waiting->data[i], l->at, l->name, sizeof l->name);
    }
    fm_vec_release(&variables);
}

/* Behind the first word of an RLock: its owner, and how often it was taken (of a mutex: how often
 * more). */
static uint64_t rlock_owner(const struct fm_heap *t, fm_addr at, bool mutex)
{
    uint64_t words[3];
    if (fm_remote_read(t->remote, at + t->layout->object_size, words, sizeof words) < 0)
        return 0;
    if (!mutex && !words[2])
        return 0;
    return words[1];
}

bool fm_lock_find(const struct fm_heap *t, fm_addr futex, const struct fm_stack *waiting,
                  struct fm_lock *ret)
{
    struct kind kind;
    *ret = (struct fm_lock){ 0 };
    ret->at = lock_by_parking(t, futex);
    if (!ret->at)
        ret->at = lock_by_search(t, futex, waiting);
    if (!ret->at || !lock_kind(t, ret->at, &kind))
        return false;
    ret->recursive = kind.recursive;
    if (ret->recursive)
        ret->owner = rlock_owner(t, ret->at, kind.mutex);
    name_lock(t, waiting, ret);
    return true;
}

/* ---- who holds it ---- */

/* Is `object` the lock, or something built around it, as a Condition? */
static bool wraps(const struct fm_heap *t, fm_addr object, fm_addr lock)
{
    if (object == lock)
        return true;
    return fm_type_flags(t, fm_object_type(t, object)) & FM_TYPE_HEAP &&
           fm_object_attribute(t, object, "_lock") == lock;
}

static bool text_ends_with_exit(const struct fm_heap *t, fm_addr text)
{
    char name[128];
    size_t len;
    return fm_object_text(t, text, name, sizeof name) && (len = strlen(name)) >= 8 &&
           strcmp(name + len - 8, "__exit__") == 0;
}

/* Is it a function called __exit__, of Python or C, bound or not? */
static bool is_exit(const struct fm_heap *t, fm_addr at, const char *type)
{
    fm_addr fields = at + t->layout->object_size;
    char name[16];
    if (strcmp(type, "builtin_function_or_method") == 0) /* m_ml → ml_name */
        return fm_heap_text(t, fm_remote_pointer(t->remote, fm_remote_pointer(t->remote, fields)),
                            name, sizeof name) &&
               strcmp(name, "__exit__") == 0;
    if (strcmp(type, "method_descriptor") == 0) /* d_type, d_name */
        return text_ends_with_exit(t, fm_remote_pointer(t->remote, fields + 8));
    if (strcmp(type, "method") == 0) /* im_func → func_qualname */
        fields = fm_remote_pointer(t->remote, fields) + t->layout->object_size;
    else if (strcmp(type, "function") != 0)
        return false;
    return text_ends_with_exit(
        t, fm_remote_pointer(t->remote, fields + (fm_layout_minor(t->layout) < 10 ? 88 : 24)));
}

/* Slots above the real top of a stack may show what was freed long ago. The allocator writes a
 * pointer over the reference count of a freed object, so a small count tells the living. */
static bool is_alive(const struct fm_heap *t, fm_addr at)
{
    uint64_t count = fm_remote_pointer(t->remote, at);
    return count > 0 && count < 1 << 20;
}

static bool slot_holds(const struct fm_heap *t, const struct fm_frame_slots *slots, size_t i,
                       fm_addr lock)
{
    char type[64];
    fm_addr object = slots->slots.data[i];
    if (!object || !fm_type_name(t, fm_object_type(t, object), type, sizeof type))
        return false;
    fm_addr self = bound_self(t, object, type);
    if (self)
        return (slots->exact || is_alive(t, object)) && wraps(t, self, lock) &&
               is_exit(t, object, type);
    if (binds_exit(t) || i == slots->n_variables)
        return false;
    /* 3.14+: the function, and above it what it is to be called with. */
    fm_addr below = slots->slots.data[i - 1];
    return wraps(t, object, lock) && fm_type_name(t, fm_object_type(t, below), type, sizeof type) &&
           is_exit(t, below, type);
}

int fm_lock_held_in(const struct fm_heap *t, fm_addr lock, const struct fm_stack *stack,
                    fm_addr *ret_exit)
{
    for (size_t i = 0; i < stack->len && i < HOLDER_FRAMES; i++) {
        struct fm_frame_slots slots;
        bool holds = false;
        if (!fm_frame_slots(t, &stack->data[i], &slots))
            continue;
        for (size_t k = slots.n_variables; k < slots.slots.len && !holds; k++) {
            holds = slot_holds(t, &slots, k, lock);
            *ret_exit = slots.exact || !binds_exit(t) ? 0 : slots.slots.data[k];
        }
        fm_frame_slots_release(&slots);
        if (holds)
            return (int)i;
    }
    return -1;
}

bool fm_lock_has_slot(const struct fm_heap *t, fm_addr object, const struct fm_stack *stack)
{
    bool has = false;
    for (size_t i = 0; i < stack->len && i < HOLDER_FRAMES && !has; i++) {
        struct fm_frame_slots slots;
        if (!fm_frame_slots(t, &stack->data[i], &slots))
            continue;
        for (size_t k = slots.n_variables; k < slots.slots.len && !has; k++)
            has = slots.slots.data[k] == object;
        fm_frame_slots_release(&slots);
    }
    return has;
}
