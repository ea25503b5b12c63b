/*
 * Blocks of marks and of tasks; see trace_marks.h.
 *
 *     head of marks := thread, begin, length, marks, kinds
 *     body of marks := column after column: begin since that of the mark before (signed), length, kind,
 *                      name, subject + 1 or 0, value, other, length of its text (files of before have no
 *                      such column); then all texts
 *     head of tasks := rows
 *     body of tasks := rows, then row after row: task, name, creator, thread, created, done
 */
#include "record/model/trace/pack/trace_marks.h"
#include "record/capture/live_trace.h"

static void add_all(struct fm_buffer *to, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fm_buffer_add_varint(to, numbers[i]);
}

enum { BEGIN, LENGTH, KIND, NAME, SUBJECT, VALUE, OTHER, TEXT, COLUMNS };

void fm_trace_marks_block(struct fm_trace_marks *marks, uint32_t thread, struct fm_buffer *head,
                          struct fm_buffer *body)
{
    struct fm_buffer columns[COLUMNS] = { 0 };
    uint64_t begin = UINT64_MAX, end = 0, kinds = 0, last = 0;
    for (size_t i = 0; i < marks->list.len; i++) {
        const struct fm_trace_mark *m = &marks->list.data[i];
        const uint64_t cells[COLUMNS] = { fm_zigzag((int64_t)(m->begin - last)),
                                          m->end - m->begin,
                                          m->kind,
                                          m->name,
                                          m->subject,
                                          m->value,
                                          m->other,
                                          m->text_len };
        for (int k = 0; k < COLUMNS; k++)
            fm_buffer_add_varint(&columns[k], cells[k]);
        last = m->begin;
        begin = m->begin < begin ? m->begin : begin;
        end = m->end > end ? m->end : end;
        kinds |= (uint64_t)1 << (m->kind & 63);
    }
    begin = begin < end ? begin : end;
    fm_buffer_clear(head);
    fm_buffer_clear(body);
    add_all(head, (const uint64_t[]){ thread, begin, end - begin, marks->list.len, kinds }, 5);
    for (int k = 0; k < COLUMNS; k++) {
        fm_buffer_add_varint(body, columns[k].len);
        fm_buffer_add(body, columns[k].data, columns[k].len);
        fm_buffer_release(&columns[k]);
    }
    for (size_t i = 0; i < marks->list.len; i++)
        fm_buffer_add(body, marks->texts.data + marks->list.data[i].text_at,
                      marks->list.data[i].text_len);
    fm_trace_marks_clear(marks);
}

void fm_trace_marks_clear(struct fm_trace_marks *marks)
{
    marks->list.len = 0;
    fm_buffer_clear(&marks->texts);
}

void fm_trace_marks_release(struct fm_trace_marks *marks)
{
    fm_vec_release(&marks->list);
    fm_buffer_release(&marks->texts);
}

bool fm_mark_facts(struct fm_mark_facts *facts, struct fm_cursor *head)
{
    uint64_t thread = fm_cursor_varint(head);
    facts->thread = (uint32_t)thread;
    facts->begin = fm_cursor_varint(head);
    facts->end = facts->begin + fm_cursor_varint(head);
    facts->marks = fm_cursor_varint(head);
    facts->kinds = fm_cursor_varint(head);
    return !head->failed && thread <= UINT32_MAX && facts->end >= facts->begin &&
           !(facts->end >> 62);
}

bool fm_trace_marks_read(const struct fm_mark_facts *facts, const struct fm_buffer *body,
                         struct fm_trace_marks *into)
{
    struct fm_cursor c = fm_cursor_over(body->data, body->len), columns[COLUMNS];
    uint64_t last = 0;
    int known = 0; /* columns */
    for (; known < COLUMNS && (known < TEXT || fm_cursor_left(&c)); known++) {
        uint64_t len = fm_cursor_varint(&c);
        const uint8_t *bytes = fm_cursor_bytes(&c, len);
        columns[known] = fm_cursor_over(bytes, bytes ? (size_t)len : 0);
    }
    if (c.failed || facts->marks > body->len)
        return false;
    for (uint64_t i = 0; i < facts->marks; i++) {
        uint64_t cells[COLUMNS] = { 0 };
        for (int k = 0; k < known; k++) {
            cells[k] = fm_cursor_varint(&columns[k]);
            if (columns[k].failed)
                return false;
        }
        last += (uint64_t)fm_unzigzag(cells[BEGIN]);
        if (last >> 62 || cells[LENGTH] >> 62)
            return false;
        struct fm_trace_mark m = { .begin = last, .end = last + cells[LENGTH] };
        m.kind = (uint32_t)cells[KIND];
        m.name = (uint32_t)cells[NAME];
        m.subject = (uint32_t)cells[SUBJECT];
        m.value = cells[VALUE];
        m.other = cells[OTHER];
        const void *text = fm_cursor_bytes(&c, cells[TEXT]);
        if (c.failed || into->texts.len + cells[TEXT] > UINT32_MAX)
            return false;
        m.text_at = (uint32_t)into->texts.len;
        m.text_len = (uint32_t)cells[TEXT];
        if (m.text_len)
            fm_buffer_add(&into->texts, text, m.text_len);
        fm_vec_push(&into->list, m);
    }
    return true;
}

void fm_trace_tasks_block(struct fm_trace_tasks *tasks, struct fm_buffer *head,
                          struct fm_buffer *body)
{
    fm_buffer_clear(head);
    fm_buffer_clear(body);
    fm_buffer_add_varint(head, tasks->list.len);
    fm_buffer_add_varint(body, tasks->list.len);
    for (size_t i = 0; i < tasks->list.len; i++) {
        const struct fm_trace_task *t = &tasks->list.data[i];
        add_all(body,
                (const uint64_t[]){ t->task, t->name, t->creator, t->thread, t->created, t->done },
                6);
    }
    for (size_t i = 0; i < tasks->list.len; i++) /* behind all rows: older readers end before */
        fm_buffer_add_varint(body, tasks->list.data[i].ended);
    tasks->list.len = 0;
}

bool fm_trace_tasks_read(const struct fm_buffer *body, struct fm_trace_tasks *into)
{
    struct fm_cursor c = fm_cursor_over(body->data, body->len);
    uint64_t count = fm_cursor_varint(&c);
    size_t first = into->list.len;
    if (count > body->len)
        return false;
    for (; count; count--) {
        struct fm_trace_task t = { 0 };
        t.task = (uint32_t)fm_cursor_varint(&c);
        t.name = (uint32_t)fm_cursor_varint(&c);
        t.creator = (uint32_t)fm_cursor_varint(&c);
        t.thread = (uint32_t)fm_cursor_varint(&c);
        t.created = fm_cursor_varint(&c);
        t.done = fm_cursor_varint(&c);
        if (c.failed || t.created >> 62 || t.done >> 62)
            return false;
        fm_vec_push(&into->list, t);
    }
    for (size_t i = first; i < into->list.len && fm_cursor_left(&c); i++) {
        uint64_t ended = fm_cursor_varint(&c);
        into->list.data[i].ended = ended < FM_TRACE_TASK_ENDS ? (uint32_t)ended : 0;
    }
    return !c.failed;
}
