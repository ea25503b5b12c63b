/* Serves the viewer to this machine; see server.h. */
#include "show/view/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/library.h"
#include "base/memory.h"
#include "show/report/json_text.h"
#include "show/view/assets.h"

#define TOKEN_CHARS     32
#define MAX_CONNECTIONS 256u
#define MAX_GUESTS      (MAX_CONNECTIONS - 32u) /* there is always room for one more */
#define ASK_TIMEOUT_S   10u                     /* without a byte, until a request is whole */
#define TIMEOUT_S       60u                     /* … and from then on */
#define BACKLOG         64
#define MAX_PIECE       ((uint64_t)72 << 20) /* of a file at once */

/* clang-format off */
#define FUNCTIONS(X)                                                                               \
    X(MHD_add_response_header) X(MHD_create_response_from_buffer) X(MHD_destroy_response)          \
    X(MHD_get_connection_info) X(MHD_lookup_connection_value) X(MHD_queue_response)                \
    X(MHD_set_connection_option) X(MHD_start_daemon) X(MHD_stop_daemon)
/* clang-format on */

static struct {
    FUNCTIONS(FM_LIBRARY_POINTER)
} http;

static const char *const functions[] = { FUNCTIONS(FM_LIBRARY_NAME) };

/* Somebody who is connected. */
struct guest {
    TAILQ_ENTRY(guest) link;
    int fd;
    bool served; /* a whole request came, its answer is on the way */
    bool shown_out;
};

struct fm_server {
    struct MHD_Daemon *daemon;
    TAILQ_HEAD(, guest) guests; /* those who waited longest first */
    size_t n_guests;
    const struct fm_contents *contents;
    uint16_t port;
    char token[TOKEN_CHARS + 1];
    char host[2][32]; /* the two names that this server has */
    struct fm_buffer address, policy, engine, list;
};

/* ---- answers ---- */

static void add_headers(const struct fm_server *s, struct MHD_Response *r, const char *type)
{
    http.MHD_add_response_header(r, "Content-Type", type);
    http.MHD_add_response_header(r, "Content-Security-Policy", s->policy.data);
    http.MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    http.MHD_add_response_header(r, "X-Frame-Options", "DENY");
    http.MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    http.MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
    http.MHD_add_response_header(r, "Cross-Origin-Opener-Policy", "same-origin");
    http.MHD_add_response_header(r, "Cache-Control", "no-store");
}

static enum MHD_Result queue(const struct fm_server *s, struct MHD_Connection *c, unsigned status,
                             const char *type, struct MHD_Response *r)
{
    add_headers(s, r, type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        http.MHD_add_response_header(r, "Allow", "GET, HEAD");
    enum MHD_Result result = http.MHD_queue_response(c, status, r);
    http.MHD_destroy_response(r);
    return result;
}

static enum MHD_Result answer(const struct fm_server *s, struct MHD_Connection *c, unsigned status,
                              const char *type, const void *bytes, size_t len)
{
    struct MHD_Response *r =
        http.MHD_create_response_from_buffer(len, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT);
    return r ? queue(s, c, status, type, r) : MHD_NO;
}

static enum MHD_Result refuse(const struct fm_server *s, struct MHD_Connection *c, unsigned status,
                              const char *sentence)
{
    return answer(s, c, status, "text/plain; charset=utf-8", sentence, strlen(sentence));
}

/* ---- who asks for what ---- */

/* Takes as long whatever the difference. */
static bool is_token(const struct fm_server *s, const char *text)
{
    unsigned difference = 0;
    if (strnlen(text, TOKEN_CHARS) < TOKEN_CHARS)
        return false;
    for (int i = 0; i < TOKEN_CHARS; i++)
        difference |= (unsigned char)text[i] ^ (unsigned char)s->token[i];
    return difference == 0;
}

static bool is_our_host(const struct fm_server *s, struct MHD_Connection *c)
{
    const char *host = http.MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
    return host && (strcmp(host, s->host[0]) == 0 || strcasecmp(host, s->host[1]) == 0);
}

/* A number up to `end`, or the end of the text; what follows that is `*text`. */
static bool take_number(const char **text, char end, uint64_t *number)
{
    const char *at = *text;
    *number = 0;
    if (*at < '0' || *at > '9' || (at[0] == '0' && at[1] >= '0' && at[1] <= '9'))
        return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (*number > UINT64_MAX / 100)
            return false;
        *number = *number * 10 + (uint64_t)(*at - '0');
    }
    *text = *at ? at + 1 : at;
    return *at == end;
}

/* A piece of the file that a recording came from: single calls that the page wants to see. */
static enum MHD_Result answer_piece(const struct fm_server *s, struct MHD_Connection *c, int file,
                                    uint64_t at, uint64_t bytes)
{
    char *piece = bytes && bytes <= MAX_PIECE && at < INT64_MAX / 2 ? malloc(bytes) : NULL;
    ssize_t got = piece ? pread(file, piece, bytes, (off_t)at) : -1;
    if (got != (ssize_t)bytes) {
        free(piece);
        return refuse(s, c, MHD_HTTP_NOT_FOUND, "Nothing is here.\n");
    }
    struct MHD_Response *r =
        http.MHD_create_response_from_buffer(bytes, piece, MHD_RESPMEM_MUST_FREE);
    if (!r) {
        free(piece);
        return MHD_NO;
    }
    return queue(s, c, MHD_HTTP_OK, "application/octet-stream", r);
}

/* "recording/NUMBER", or "recording/NUMBER/PLACE/BYTES" of its file. */
static enum MHD_Result answer_recording(const struct fm_server *s, struct MHD_Connection *c,
                                        const char *what)
{
    uint64_t number, at, bytes;
    const char *rest = what;
    if (take_number(&rest, '\0', &number) && number < s->contents->files.len) {
        const struct fm_content *content = &s->contents->files.data[number];
        return answer(s, c, MHD_HTTP_OK, "application/octet-stream", content->bytes, content->len);
    }
    rest = what;
    if (take_number(&rest, '/', &number) && take_number(&rest, '/', &at) &&
        take_number(&rest, '\0', &bytes) && number < s->contents->files.len &&
        s->contents->files.data[number].file >= 0)
        return answer_piece(s, c, s->contents->files.data[number].file, at, bytes);
    return refuse(s, c, MHD_HTTP_NOT_FOUND, "Nothing is here.\n");
}

/* ---- who is connected ---- */

/* The library takes no more connections than it has places, so whoever only keeps a place must not
 * keep others out: from a number on, the one who has asked nothing for longest is shown out. */
static void show_one_out(struct fm_server *s)
{
    struct guest *g;
    TAILQ_FOREACH(g, &s->guests, link)
    {
        if (g->served || g->shown_out)
            continue;
        g->shown_out = true;
        shutdown(g->fd, SHUT_RDWR); /* the library sees the end of it, and closes */
        return;
    }
}

static void on_connection(void *context, struct MHD_Connection *c, void **guest,
                          enum MHD_ConnectionNotificationCode what)
{
    struct fm_server *s = context;
    struct guest *g = *guest;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        g = *guest = fm_calloc(1, sizeof *g);
        g->fd = http.MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        TAILQ_INSERT_TAIL(&s->guests, g, link);
        if (++s->n_guests > MAX_GUESTS)
            show_one_out(s);
    } else {
        TAILQ_REMOVE(&s->guests, g, link);
        s->n_guests--;
        free(g);
        *guest = NULL;
    }
}

static struct guest *guest_of(struct MHD_Connection *c)
{
    return http.MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void on_answered(void *context, struct MHD_Connection *c, void **request,
                        enum MHD_RequestTerminationCode how)
{
    struct fm_server *s = context;
    struct guest *g = guest_of(c);
    (void)request, (void)how;
    g->served = false;
    TAILQ_REMOVE(&s->guests, g, link);
    TAILQ_INSERT_TAIL(&s->guests, g, link);
}

static enum MHD_Result handle(void *context, struct MHD_Connection *c, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_bytes, void **request)
{
    const struct fm_server *s = context;
    static const char recording[] = "recording/";
    static int seen;
    (void)version, (void)upload;
    if (!*request) { /* the head only; the answer is given when the request is whole */
        *request = &seen;
        return MHD_YES;
    }
    if (*upload_bytes) {
        *upload_bytes = 0; /* nobody has anything to tell us */
        return MHD_YES;
    }
    guest_of(c)->served = true;
    http.MHD_set_connection_option(c, MHD_CONNECTION_OPTION_TIMEOUT, TIMEOUT_S);
    if (!is_our_host(s, c))
        return refuse(s, c, MHD_HTTP_FORBIDDEN, "Not under this name.\n");
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(s, c, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET.\n");
    if (path[0] != '/' || !is_token(s, path + 1) || path[1 + TOKEN_CHARS] != '/')
        return refuse(s, c, MHD_HTTP_NOT_FOUND,
                      "Nothing is here. Use the whole address that `fathom view` printed.\n");
    const char *what = path + 1 + TOKEN_CHARS + 1;
    struct fm_asset page = fm_asset_page_text();
    if (!*what)
        return answer(s, c, MHD_HTTP_OK, "text/html; charset=windows-1252", page.bytes, page.len);
    if (strcmp(what, "engine.wasm") == 0)
        return answer(s, c, MHD_HTTP_OK, "application/wasm", s->engine.data, s->engine.len);
    if (strcmp(what, "recordings.json") == 0)
        return answer(s, c, MHD_HTTP_OK, "application/json", s->list.data, s->list.len);
    if (strncmp(what, recording, strlen(recording)) == 0)
        return answer_recording(s, c, what + strlen(recording));
    return refuse(s, c, MHD_HTTP_NOT_FOUND, "Nothing is here.\n");
}

/* ---- starting and stopping ---- */

static int make_token(struct fm_server *s, struct fm_error *err)
{
    unsigned char bytes[TOKEN_CHARS / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return fm_error_set_errno(err, FM_SYSTEM, errno, "getting a random token");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(s->token + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* A socket on the loopback device, or −1. */
static int listen_on(struct fm_server *s, uint16_t port, struct fm_error *err)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, BACKLOG) == 0 &&
        getsockname(fd, (struct sockaddr *)&at, &len) == 0) {
        s->port = ntohs(at.sin_port);
        return fd;
    }
    if (errno == EADDRINUSE)
        fm_error_set(err, FM_SYSTEM,
                     "port %u is in use; choose another with --port, or leave it out for any",
                     port);
    else
        fm_error_set_errno(err, FM_SYSTEM, errno, "listening on port %u of this machine", port);
    if (fd >= 0)
        close(fd);
    return -1;
}

static void make_list(struct fm_server *s)
{
    fm_buffer_add_char(&s->list, '[');
    for (size_t i = 0; i < s->contents->files.len; i++) {
        fm_buffer_add_text(&s->list, i ? ", {" : "{");
        fm_json_add_text_member(&s->list, "name", s->contents->files.data[i].name);
        fm_json_add_member(&s->list, "bytes", (int64_t)s->contents->files.data[i].len);
        fm_buffer_addf(&s->list, ", \"address\": \"recording/%zu\", \"pieces\": %s}", i,
                       s->contents->files.data[i].file >= 0 ? "true" : "false");
    }
    fm_buffer_add_char(&s->list, ']');
}

static int prepare(struct fm_server *s, struct fm_error *err)
{
    if (make_token(s, err) < 0 || fm_asset_engine_unpack(&s->engine, err) < 0)
        return err->status;
    fm_asset_policy(&s->policy, "'self'");
    fm_buffer_add_text(&s->policy, "; frame-ancestors 'none'");
    make_list(s);
    return 0;
}

struct fm_server *fm_server_start(const struct fm_contents *contents, uint16_t port,
                                  struct fm_error *err)
{
    if (!http.MHD_start_daemon &&
        fm_library_load(&http, FM_COUNT(functions), functions, FM_LIBMICROHTTPD,
                        "GNU libmicrohttpd", "libmicrohttpd12", err) < 0)
        return NULL;
    struct fm_server *s = fm_calloc(1, sizeof *s);
    s->contents = contents;
    TAILQ_INIT(&s->guests);
    int fd = prepare(s, err) < 0 ? -1 : listen_on(s, port, err);
    if (fd < 0) {
        fm_server_stop(s);
        return NULL;
    }
    snprintf(s->host[0], sizeof s->host[0], "127.0.0.1:%u", s->port);
    snprintf(s->host[1], sizeof s->host[1], "localhost:%u", s->port);
    fm_buffer_addf(&s->address, "http://127.0.0.1:%u/%s/", s->port, s->token);
    s->daemon = http.MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO, 0, NULL, NULL, handle, s,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, MAX_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, ASK_TIMEOUT_S, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        s, MHD_OPTION_NOTIFY_COMPLETED, on_answered, s, MHD_OPTION_END);
    if (!s->daemon) {
        close(fd);
        fm_error_set(err, FM_SYSTEM, "the server cannot be started");
        fm_server_stop(s);
        return NULL;
    }
    return s;
}

void fm_server_stop(struct fm_server *s)
{
    if (!s)
        return;
    if (s->daemon)
        http.MHD_stop_daemon(s->daemon);
    fm_buffer_release(&s->address);
    fm_buffer_release(&s->policy);
    fm_buffer_release(&s->engine);
    fm_buffer_release(&s->list);
    free(s);
}

const char *fm_server_address(const struct fm_server *server)
{
    return server->address.data;
}

uint16_t fm_server_port(const struct fm_server *server)
{
    return server->port;
}
