/*
 * What threads waited for: in which state, for what, and where. Shares are of all time in the
 * processes shown, so they can be read beside those of the functions.
 */
#include "show/report/samples/places.h"
#include "show/report/samples/sampling.h"

static void add_wait(struct fm_table *t, const struct fm_report *r, const struct fm_place *place,
                     const struct fm_places *places)
{
    fm_autobuffer where = FM_BUFFER_INIT;
    char text[FM_NUMBER_BYTES];
    double part = (double)place->ns, whole = (double)places->all_ns;
    enum fm_state state = (enum fm_state)place->wait.state;
    const char *detail = fm_profile_text(r->p, place->wait.detail);
    fm_table_cell(t, FM_COLOR_NONE, fm_number_time(text, place->ns));
    fm_table_cell(t, fm_color_heat(part, whole), fm_number_percent(text, part, whole));
    fm_table_cell(t, FM_COLOR_NONE, fm_number_count(text, place->samples));
    fm_table_cell(t, FM_COLOR_NONE, fm_state_name(state));
    fm_buffer_addf(&where, "%s:%u", fm_names_file(r->names, place->row), place->wait.line);
    fm_table_cell(t, FM_COLOR_DIM, where.data);
    fm_table_cell_pair(t, FM_COLOR_NAME, *detail ? detail : fm_state_title(state),
                       fm_names_function(r->names, place->row));
}

void fm_report_waits(const struct fm_report *r)
{
    struct fm_places places;
    struct fm_table t;
    char a[FM_NUMBER_BYTES], b[FM_NUMBER_BYTES];
    fm_places_init(&places, r, FM_PART_WAITS);
    fm_table_init(&t, r->style);
    fm_table_column(&t, "time", FM_TABLE_RIGHT);
    fm_table_column(&t, "%", FM_TABLE_RIGHT);
    fm_table_column(&t, "samples", FM_TABLE_OPTIONAL);
    fm_table_column(&t, "state", FM_TABLE_LEFT);
    fm_table_column(&t, "where", FM_TABLE_LEFT);
    fm_table_column(&t, "waiting for", FM_TABLE_FLEXIBLE);
    for (size_t i = 0; i < places.all.len; i++)
        add_wait(&t, r, &places.all.data[i], &places);
    if (places.of)
        fm_table_print(&t, r->out);
    else
        fputs("No thread waited for anything that has a name.\n", r->out);
    fm_table_release(&t);
    if (places.all.len < places.of) {
        fm_color_begin(&r->style, r->out, FM_COLOR_DIM);
        fprintf(r->out, "\n%s of %s waits", fm_number_count(a, (int64_t)places.all.len),
                fm_number_count(b, (int64_t)places.of));
        fm_color_end(&r->style, r->out, FM_COLOR_DIM);
        fputc('\n', r->out);
    }
    fm_places_release(&places);
}
