/*
 * What the heap library must know of one CPython: where its frames and code objects keep what says
 * who allocated. The agent, which is made for exactly that version, fills it in and hands it over
 * (fathom_heap_python) when the program's first code is about to run.
 *
 * Offsets are in bytes. This is the border between two libraries of one build: both have it from
 * here, and `bytes` proves it.
 */
#ifndef FM_HEAP_LAYOUT_H
#define FM_HEAP_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* A code object as it is written down. Texts are UTF-8; `file` and `name` may be cut. */
struct fm_heap_code {
    uint32_t flags, first_line;
    uint32_t name_bytes, qualname_bytes, file_bytes, table_bytes;
    const unsigned char *table; /* of positions, the code object's own */
    char name[256], qualname[512], file[4096];
};

/* What a thread has allocated and freed since it began, and the highest that this was apart since
 * whoever measures lines (`high`) or regions (`top`) set it: these two open and close in no common
 * order. The thread's own. The agent reads it when a line or a region begins and ends
 * (target/agent/lines/line_memory.h, regions.h). */
struct fm_heap_meter {
    uint64_t allocated, freed;
    int64_t high, top;
};

struct fm_heap_layout {
    uint32_t bytes; /* sizeof of this */
    uint32_t python_hex;
    uint32_t thread_frame; /* of the thread state: the newest frame, or (3.11, 3.12) the cframe */
    uint32_t thread_interpreter; /* of the thread state; UINT32_MAX: all have one GIL */
    uint32_t cframe_frame;       /* of the cframe; UINT32_MAX: there is none */
    uint32_t frame_previous, frame_instr, frame_code, frame_owner;
    uint32_t owner_generator;    /* frames of this owner are part of a generator */
    uint32_t owner_foreign;      /* of this or more: not Python code */
    uint32_t object_frame;       /* of a frame object: the frame it stands for */
    uint32_t gc_head;            /* bytes in front of an object that the garbage collector knows */
    uint32_t frame_object_bytes; /* the least that is asked for when a frame object is made */
    uint32_t code_bytecode;      /* where the instructions begin */
    const void *const *finalizing; /* the thread state that ends the interpreter, or NULL there */
    void *(*current_thread)(void); /* the thread state that holds the GIL here, or NULL */
    void *(*thread_of_this)(void); /* the thread state of this thread, GIL or not, or NULL */
    /* The frame object of a frame on that thread's stack, made if need be: a new reference, or NULL.
     * With the GIL; raises nothing, runs no other code. */
    void *(*frame_object_of)(void *thread, const void *frame);
    void (*give_up)(void *); /* that reference */
    /* Reads only, takes no GIL: the code object is that of a frame of this thread. */
    void (*describe)(const void *code, struct fm_heap_code *out);
    void (*describe_type)(const void *type, struct fm_heap_code *out); /* with the GIL */
    /* The name that the program gave the thread that this is the state of; its bytes, or 0 if there is
     * none yet. With the GIL; raises nothing, runs no other code. */
    uint32_t (*thread_name)(void *thread, char *out, uint32_t room);
    /* Was the agent told of new objects, and is it no more? With the GIL. */
    bool (*types_ended)(void);
};

#endif
