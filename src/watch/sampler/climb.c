/* From bytes to a stack; see climb.h, which has the rules by number. */
#include "watch/sampler/climb.h"

#include <string.h>

#include "watch/cpython/stack.h"

#define MAX_FRAME_BYTES 512u
#define HIGHEST_ADDRESS (1ull << 56) /* of a user's memory on any machine */

/* The words of a frame that the climb looks at. */
struct frame_words {
    fm_addr previous, code;
    uint64_t instr;
    uint8_t owner;
    bool own; /* the interpreter's, no Python code */
};

void fm_climb_begin(struct fm_climb *climb)
{
    climb->frames.len = climb->places.len = 0;
    climb->begun = climb->last_is_own = false;
    climb->at = climb->last = climb->want = 0;
    climb->last_owner = 0;
    climb->passed = 0;
}

void fm_climb_release(struct fm_climb *climb)
{
    fm_vec_release(&climb->frames);
    fm_vec_release(&climb->places);
}

static enum fm_climb_memory word_at(struct fm_climb *climb, const struct fm_climb_ground *g,
                                    fm_addr at, uint64_t *ret)
{
    if (at & 7 || at >= HIGHEST_ADDRESS)
        return FM_MEMORY_NONE;
    return g->memory(g->data, at, ret, sizeof *ret, &climb->want);
}

static enum fm_climb_memory frame_at(struct fm_climb *climb, const struct fm_climb_ground *g,
                                     fm_addr at, struct frame_words *f)
{
    const struct fm_layout *l = g->layout;
    uint8_t bytes[MAX_FRAME_BYTES];
    if (at & 7 || at >= HIGHEST_ADDRESS || l->frame_size > sizeof bytes)
        return FM_MEMORY_NONE;
    enum fm_climb_memory answer = g->memory(g->data, at, bytes, l->frame_size, &climb->want);
    if (answer != FM_MEMORY_HERE)
        return answer;
    memcpy(&f->previous, bytes + l->frame_previous, 8);
    memcpy(&f->code, bytes + l->frame_code, 8);
    f->code &= ~(uint64_t)l->code_tag_mask;
    f->owner = l->frame_owner == FM_ABSENT ? 0 : bytes[l->frame_owner];
    f->own = l->frame_owner != FM_ABSENT && f->owner >= l->owner_boundary;
    if (l->frames == FM_FRAMES_HEAP) {
        int32_t last;
        memcpy(&last, bytes + l->frame_instr, sizeof last);
        f->instr = (uint64_t)(int64_t)last;
    } else {
        memcpy(&f->instr, bytes + l->frame_instr, 8);
    }
    return FM_MEMORY_HERE;
}

static enum fm_climb_code code_of(struct fm_climb *climb, const struct fm_climb_ground *g,
                                  const struct frame_words *f, struct fm_raw_frame *ret)
{
    if (!f->code || f->code & 7)
        return FM_CODE_MISFIT;
    climb->want = f->code;
    return g->code(g->data, f->code, f->instr, ret);
}

static enum fm_climb_result wants(enum fm_climb_memory answer)
{
    return answer == FM_MEMORY_MISSING ? FM_CLIMB_WANTS : FM_CLIMB_NO;
}

/* Rule 1: is what the record of an evaluation names a frame, or has the record not been filled yet?
 */
static enum fm_climb_result is_frame(struct fm_climb *climb, const struct fm_climb_ground *g,
                                     fm_addr at, bool *ret)
{
    struct frame_words f;
    struct fm_raw_frame raw;
    *ret = !at; /* nothing runs */
    enum fm_climb_memory answer = at ? frame_at(climb, g, at, &f) : FM_MEMORY_NONE;
    if (answer == FM_MEMORY_MISSING)
        return FM_CLIMB_WANTS;
    if (answer == FM_MEMORY_NONE)
        return FM_CLIMB_WHOLE;
    if (f.own) {
        *ret = f.owner == g->layout->owner_boundary;
        return FM_CLIMB_WHOLE;
    }
    enum fm_climb_code code = code_of(climb, g, &f, &raw);
    *ret = code != FM_CODE_MISFIT;
    return code == FM_CODE_MISSING ? FM_CLIMB_WANTS_CODE : FM_CLIMB_WHOLE;
}

static enum fm_climb_result newest_of_records(struct fm_climb *climb,
                                              const struct fm_climb_ground *g, fm_addr record,
                                              fm_addr *ret)
{
    bool filled;
    enum fm_climb_memory answer = word_at(climb, g, record + g->layout->cframe_frame, ret);
    if (answer != FM_MEMORY_HERE)
        return wants(answer);
    enum fm_climb_result result = is_frame(climb, g, *ret, &filled);
    if (result != FM_CLIMB_WHOLE || filled)
        return result;
    answer = word_at(climb, g, record + g->layout->cframe_frame + 8, &record); /* the one below */
    if (answer == FM_MEMORY_HERE)
        answer = word_at(climb, g, record + g->layout->cframe_frame, ret);
    return answer == FM_MEMORY_HERE ? FM_CLIMB_WHOLE : wants(answer);
}

static enum fm_climb_result newest(struct fm_climb *climb, const struct fm_climb_ground *g,
                                   fm_addr *ret)
{
    enum fm_climb_memory answer = word_at(climb, g, g->thread + g->layout->thread_frame, ret);
    if (answer != FM_MEMORY_HERE)
        return wants(answer);
    if (g->layout->frames != FM_FRAMES_CFRAME || !*ret)
        return FM_CLIMB_WHOLE;
    return newest_of_records(climb, g, *ret, ret);
}

/* Rule 6: may a stack begin with the frame that was passed last? */
static enum fm_climb_result end(struct fm_climb *climb, const struct fm_climb_ground *g)
{
    const struct fm_layout *l = g->layout;
    if (!climb->passed)
        return FM_CLIMB_WHOLE;
    if (l->frames == FM_FRAMES_HEAP) {
        uint8_t bytes[MAX_FRAME_BYTES];
        enum fm_climb_memory answer =
            g->memory(g->data, climb->last, bytes, l->frame_size, &climb->want);
        if (answer != FM_MEMORY_HERE)
            return wants(answer);
        return fm_stack_frame_executes(l, bytes) ? FM_CLIMB_WHOLE : FM_CLIMB_NO;
    }
    if (l->owner_boundary == UINT8_MAX)
        return climb->last_owner != l->owner_generator ? FM_CLIMB_WHOLE : FM_CLIMB_NO;
    return climb->last_is_own ? FM_CLIMB_WHOLE : FM_CLIMB_NO;
}

/* Rules 2 to 5, of the frame at `climb->at`. FM_CLIMB_WHOLE: the frame is done with. */
static enum fm_climb_result pass(struct fm_climb *climb, const struct fm_climb_ground *g)
{
    struct frame_words f;
    struct fm_raw_frame raw;
    enum fm_climb_memory answer = frame_at(climb, g, climb->at, &f);
    if (answer != FM_MEMORY_HERE)
        return wants(answer);
    if (f.own && f.owner > g->layout->owner_boundary + 1)
        return FM_CLIMB_NO;
    if (!f.own) {
        switch (code_of(climb, g, &f, &raw)) {
        case FM_CODE_MISSING:
            return FM_CLIMB_WANTS_CODE;
        case FM_CODE_MISFIT:
            if (climb->passed)
                return FM_CLIMB_NO;
            break;
        case FM_CODE_FITS:
            fm_vec_push(&climb->frames, raw);
            fm_vec_push(&climb->places, ((struct fm_climb_place){ climb->at, f.code }));
            break;
        case FM_CODE_HIDDEN:
            break;
        }
    }
    climb->last = climb->at;
    climb->last_is_own = f.own;
    climb->last_owner = f.owner;
    climb->at = f.previous;
    climb->passed++;
    return FM_CLIMB_WHOLE;
}

enum fm_climb_result fm_climb_go(struct fm_climb *climb, const struct fm_climb_ground *ground)
{
    if (!climb->begun) {
        enum fm_climb_result result = newest(climb, ground, &climb->at);
        if (result != FM_CLIMB_WHOLE)
            return result;
        climb->begun = true;
    }
    while (climb->at) {
        if (climb->passed == FM_CLIMB_MAX_FRAMES)
            return FM_CLIMB_CUT;
        enum fm_climb_result result = pass(climb, ground);
        if (result != FM_CLIMB_WHOLE)
            return result;
    }
    return end(climb, ground);
}
