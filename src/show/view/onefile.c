/* A report in one file; see onefile.h. */
#define ZLIB_CONST
#include "show/view/onefile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/output.h"
#include "show/view/assets.h"

#define GZIP          (15 + 16)
#define PIECE         ((size_t)256 << 10)
#define LARGE_BYTES   ((size_t)64 << 20) /* beyond, the last per cent is not worth the time */
#define POLICY_MARK   "<!--fathom:policy-->"
#define CONTENTS_MARK "<!--fathom:contents-->"

/* ---- text ---- */

/* Characters of HTML as such; others than ASCII, of which the page has none, by their number. */
static void put_attribute(FILE *out, const char *text)
{
    for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
        uint32_t code = *s;
        int more = *s >= 0xf0 ? 3 : *s >= 0xe0 ? 2 : *s >= 0xc0 ? 1 : 0;
        if (code >= 0x80)
            code = more ? code & (0x3fu >> more) : 0xfffd;
        for (; more && (s[1] & 0xc0) == 0x80; more--)
            code = code << 6 | (*++s & 0x3f);
        if (more || code > 0x10ffff || code < 0x20 || code == 0x7f)
            code = 0xfffd;
        if (code < 0x80 && !strchr("\"&<>'", (int)code))
            fputc((int)code, out);
        else
            fprintf(out, "&#x%x;", code);
    }
}

/* ---- bytes ---- */

/* All bytes but four survive in a script element of a page in windows-1252. */
static void put_bytes(FILE *out, const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = bytes[i];
        if (c == 0 || c == '\r' || c == '<' || c == '=') {
            putc_unlocked('=', out);
            c = (unsigned char)(c + 64);
        }
        putc_unlocked(c, out);
    }
}

static int put_packed(FILE *out, const char *bytes, size_t len, struct fm_error *err)
{
    z_stream z = { .next_in = (const Bytef *)bytes };
    int level = len > LARGE_BYTES ? 6 : 9, status = Z_OK;
    if (deflateInit2(&z, level, Z_DEFLATED, GZIP, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return fm_error_set(err, FM_SYSTEM, "zlib does not start");
    fm_autofree unsigned char *piece = fm_malloc(PIECE);
    while (status == Z_OK) {
        size_t left = len - (size_t)((const char *)z.next_in - bytes);
        z.avail_in = (uInt)(left < PIECE ? left : PIECE);
        z.next_out = piece;
        z.avail_out = (uInt)PIECE;
        status = deflate(&z, left > PIECE ? Z_NO_FLUSH : Z_FINISH);
        put_bytes(out, piece, PIECE - z.avail_out);
    }
    deflateEnd(&z);
    return status == Z_STREAM_END ? 0 : fm_error_set(err, FM_SYSTEM, "zlib failed (%d)", status);
}

static void put_head(FILE *out, const char *kind, const char *name, size_t len,
                     const struct fm_content *content)
{
    fprintf(
        out,
        "<script type=\"application/x-fathom\" data-kind=\"%s\" data-bytes=\"%zu\" data-name=\"",
        kind, len);
    put_attribute(out, name);
    if (content && content->left_out)
        fprintf(out, "\" data-left-out=\"%llu", (unsigned long long)content->left_out);
    if (content && content->from_ns < content->to_ns)
        fprintf(out, "\" data-from=\"%llu\" data-to=\"%llu", (unsigned long long)content->from_ns,
                (unsigned long long)content->to_ns);
    fputs("\">", out);
}

/* The size that a gzip stream names at its end: that of what is in it. */
static size_t size_in_gzip(struct fm_asset packed)
{
    const unsigned char *end = (const unsigned char *)packed.bytes + packed.len;
    return (size_t)end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 | (size_t)end[-1] << 24;
}

static int put_contents(FILE *out, const struct fm_contents *contents, struct fm_error *err)
{
    struct fm_asset engine = fm_asset_engine_gzip();
    put_head(out, "engine", "", size_in_gzip(engine), NULL);
    put_bytes(out, (const unsigned char *)engine.bytes, engine.len);
    fputs("</script>\n", out);
    for (size_t i = 0; i < contents->files.len; i++) {
        const struct fm_content *file = &contents->files.data[i];
        put_head(out, "recording", file->name, file->len, file);
        if (put_packed(out, file->bytes, file->len, err) < 0)
            return err->status;
        fputs("</script>\n", out);
    }
    fputs("<meta name=\"fathom-end\" content=\"\">\n", out);
    return 0;
}

static int put_page(FILE *out, const struct fm_contents *contents, struct fm_error *err)
{
    struct fm_asset page = fm_asset_page_text();
    const char *end = page.bytes + page.len;
    const char *policy = memmem(page.bytes, page.len, POLICY_MARK, strlen(POLICY_MARK));
    const char *rest = policy ? policy + strlen(POLICY_MARK) : page.bytes;
    const char *place = memmem(rest, (size_t)(end - rest), CONTENTS_MARK, strlen(CONTENTS_MARK));
    if (!policy || !place)
        return fm_error_set(err, FM_SYSTEM, "the viewer's page in this command is damaged");
    fm_autobuffer rule = FM_BUFFER_INIT;
    fm_asset_policy(&rule, "'none'");
    fwrite(page.bytes, 1, (size_t)(policy - page.bytes), out);
    fprintf(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">", rule.data);
    fwrite(rest, 1, (size_t)(place - rest), out);
    if (put_contents(out, contents, err) < 0)
        return err->status;
    rest = place + strlen(CONTENTS_MARK);
    fwrite(rest, 1, (size_t)(end - rest), out);
    return 0;
}

/* ---- the file ---- */

static int write_page(void *context, int fd, struct fm_error *err)
{
    int own = dup(fd); /* fclose() closes it */
    FILE *out = own < 0 ? NULL : fdopen(own, "wb");
    if (!out) {
        fm_error_set(err, FM_CANNOT_WRITE, "%s", strerror(errno));
        if (own >= 0)
            close(own);
        return err->status;
    }
    setvbuf(out, NULL, _IOFBF, PIECE);
    int status = put_page(out, context, err);
    bool failed = ferror(out);
    if ((fclose(out) != 0 || failed) && status == 0)
        status = fm_error_set(err, FM_CANNOT_WRITE, "%s", strerror(errno));
    return status;
}

int fm_onefile_write(const struct fm_contents *contents, const char *path, bool overwrite,
                     struct fm_error *err)
{
    return fm_output_write(path, overwrite, write_page, (void *)contents, err);
}
