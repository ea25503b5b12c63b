/* Text and times in JSON; see json.h. */
#include "record/formats/json.h"

#include <string.h>

#include "base/utf8.h"

void fm_json_put_text(struct fm_buffer *out, const char *text, size_t len)
{
    fm_buffer_add_char(out, '"');
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)text[i];
        size_t n = fm_utf8_char(text + i, len - i);
        bool surrogate = n == 3 && c == 0xed && (unsigned char)text[i + 1] >= 0xa0;
        if (!n || surrogate)
            fm_buffer_add_text(out, "\xef\xbf\xbd");
        else if (c == '"' || c == '\\')
            fm_buffer_addf(out, "\\%c", c);
        else if (c < 0x20)
            fm_buffer_addf(out, "\\u%04x", c);
        else
            fm_buffer_add(out, text + i, n);
        i += n ? n : 1;
    }
    fm_buffer_add_char(out, '"');
}

void fm_json_put_string(struct fm_buffer *out, const struct fm_profile *p, uint32_t string)
{
    fm_json_put_text(out, fm_profile_text(p, string), fm_strings_len(p->strings, string));
}

void fm_json_put_ns(struct fm_buffer *out, int64_t ns, unsigned digits)
{
    char text[32];
    uint64_t unit = digits == 6 ? 1000000 : 1000;
    uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    uint64_t part = size % unit;
    fm_buffer_addf(out, "%s%llu", ns < 0 ? "-" : "", (unsigned long long)(size / unit));
    if (!part)
        return;
    for (unsigned i = digits; i-- > 0; part /= 10)
        text[i] = (char)('0' + part % 10);
    while (text[digits - 1] == '0')
        digits--;
    fm_buffer_add_char(out, '.');
    fm_buffer_add(out, text, digits);
}
