/*
 * Shows what Fathom reads of the code objects and frames of a running Python, for
 * tests/behaviour/test_code_positions.py, which compares it with what that Python says itself.
 *
 *   tool_code PID VERSION_HEX RUNTIME codes    addresses of code objects on the standard input
 *   tool_code PID VERSION_HEX RUNTIME frames   the frames of all threads of the main interpreter
 *
 * Numbers are hexadecimal in the arguments. Text is printed as the hexadecimal digits of its UTF-8.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/cpython/code.h"

#define MAX_FRAMES 1000

static void print_text(const char *text)
{
    for (; *text; text++)
        printf("%02x", (unsigned char)*text);
    putchar(' ');
}

static void print_position(struct fm_position p)
{
    printf("%u %u %u %u\n", p.line, p.end_line, p.column, p.end_column);
}

static int show_code(const struct fm_remote *remote, const struct fm_layout *layout, fm_addr at)
{
    struct fm_code code;
    int r = fm_code_read(&code, remote, layout, at, 0);
    if (r < 0) {
        fprintf(stderr, "code object at %#" PRIx64 ": %s\n", at, strerror(-r));
        return 1;
    }
    printf("code ");
    print_text(code.name);
    print_text(code.qualname);
    print_text(code.file);
    printf("%u %u %u\n", code.first_line, code.flags, code.bytecode_len);
    for (uint32_t offset = 0; offset < code.bytecode_len; offset += 2)
        print_position(fm_code_position(&code, layout, (int32_t)offset));
    fm_code_release(&code);
    return 0;
}

/* One frame; the address of the one that called it. */
static fm_addr show_frame(const struct fm_remote *remote, const struct fm_layout *layout,
                          fm_addr at)
{
    uint8_t *frame = malloc(layout->frame_size);
    fm_addr previous = 0, code_at;
    uint64_t instr = 0;
    if (fm_remote_read(remote, at, frame, layout->frame_size) < 0) {
        printf("bad frame\n");
        free(frame);
        return 0;
    }
    memcpy(&previous, frame + layout->frame_previous, sizeof previous);
    memcpy(&code_at, frame + layout->frame_code, sizeof code_at);
    memcpy(&instr, frame + layout->frame_instr, layout->frames == FM_FRAMES_HEAP ? 4 : 8);
    uint8_t owner = layout->frame_owner == FM_ABSENT ? 0 : frame[layout->frame_owner];
    free(frame);
    if (owner >= layout->owner_boundary)
        return previous;
    struct fm_code code;
    int32_t offset;
    int r = fm_code_read(&code, remote, layout, code_at & ~(fm_addr)layout->code_tag_mask, 0);
    if (r < 0) {
        printf("bad code: %s\n", strerror(-r));
        return previous;
    }
    if (fm_code_is_shim(&code, layout)) {
        fm_code_release(&code);
        return previous;
    }
    bool inside = fm_code_offset(&code, layout, instr, &offset);
    printf("frame ");
    print_text(code.name);
    printf("%d ", inside && offset >= 0 ? fm_layout_runs_c(layout, code.bytecode[offset]) : -1);
    if (inside)
        print_position(fm_code_position(&code, layout, offset));
    else
        printf("outside\n");
    fm_code_release(&code);
    return previous;
}

static int show_frames(const struct fm_remote *remote, const struct fm_layout *layout,
                       fm_addr runtime)
{
    fm_addr interp = fm_remote_pointer(remote, runtime + layout->runtime_interpreters_head);
    fm_addr thread = fm_remote_pointer(remote, interp + layout->interp_threads_head);
    for (; thread; thread = fm_remote_pointer(remote, thread + layout->thread_next)) {
        if (fm_remote_pointer(remote, thread + layout->thread_interp) != interp) {
            printf("bad thread\n");
            return 1;
        }
        printf("thread %" PRIu64 "\n", fm_remote_pointer(remote, thread + layout->thread_id));
        fm_addr frame = fm_remote_pointer(remote, thread + layout->thread_frame);
        if (layout->frames == FM_FRAMES_CFRAME)
            frame = fm_remote_pointer(remote, frame + layout->cframe_frame);
        for (int i = 0; frame && i < MAX_FRAMES; i++)
            frame = show_frame(remote, layout, frame);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    struct fm_remote remote;
    struct fm_layout layout;
    struct fm_error err = FM_ERROR_INIT;
    fm_remote_live(&remote, (pid_t)atoi(argv[1]));
    fm_addr runtime = strtoull(argv[3], NULL, 16);
    if (fm_layout_find(&layout, &remote, runtime, (uint32_t)strtoul(argv[2], NULL, 16), &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (strcmp(argv[4], "frames") == 0)
        return show_frames(&remote, &layout, runtime);
    char line[64];
    int status = 0;
    while (fgets(line, sizeof line, stdin))
        status |= show_code(&remote, &layout, strtoull(line, NULL, 16));
    return status;
}
