/* Writing JSON; see json_text.h. */
#include "show/report/json_text.h"

void fm_json_add_text(struct fm_buffer *out, const char *text)
{
    fm_buffer_add_char(out, '"');
    for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
        if (*s == '"' || *s == '\\') {
            fm_buffer_addf(out, "\\%c", *s);
        } else if (*s < 0x20 || *s == 0x7f) {
            fm_buffer_addf(out, "\\u%04x", *s);
        } else if (*s == 0xed && s[1] >= 0xa0 && s[2]) {
            fm_buffer_addf(out, "\\u%04x", 0xd000u | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu));
            s += 2;
        } else {
            fm_buffer_add_char(out, (char)*s);
        }
    }
    fm_buffer_add_char(out, '"');
}

void fm_json_add_key(struct fm_buffer *out, const char *key)
{
    char last = out->len ? out->data[out->len - 1] : '{';
    fm_buffer_addf(out, "%s\"%s\": ", last == '{' || last == '[' ? "" : ", ", key);
}

void fm_json_add_text_member(struct fm_buffer *out, const char *key, const char *text)
{
    fm_json_add_key(out, key);
    fm_json_add_text(out, text);
}

void fm_json_add_member(struct fm_buffer *out, const char *key, int64_t value)
{
    fm_json_add_key(out, key);
    fm_buffer_addf(out, "%lld", (long long)value);
}

void fm_json_add_function(struct fm_buffer *out, const struct fm_profile *p, uint32_t func)
{
    const struct fm_function *f = &p->functions.data[func];
    fm_json_add_text_member(out, "name", fm_profile_text(p, f->name));
    fm_json_add_text_member(out, "qualname",
                            fm_profile_text(p, f->qualname ? f->qualname : f->name));
    fm_json_add_text_member(out, "file", fm_profile_text(p, f->file));
    fm_json_add_member(out, "line", f->line);
    if (f->twin)
        fm_json_add_member(out, "twin", f->twin);
}

void fm_json_add_states(struct fm_buffer *out, const char *key,
                        const int64_t state_ns[FM_STATE_COUNT])
{
    fm_json_add_key(out, key);
    fm_buffer_add_char(out, '{');
    for (int s = 0; s < FM_STATE_COUNT; s++)
        fm_json_add_member(out, fm_state_name((enum fm_state)s), state_ns[s]);
    fm_buffer_add_char(out, '}');
}
