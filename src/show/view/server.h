/*
 * Serves the viewer's page, its engine and the recordings to browsers on this machine, and to
 * nobody else.
 *
 * Who may read what is served: whoever knows the address. It is on the loopback device only; its
 * path begins with 128 random bits, compared in constant time; and requests must name 127.0.0.1 or
 * localhost with this port as their host, so that no page from elsewhere gets here by a name of its
 * own that it points at this machine. There is no CORS header, so scripts of other pages cannot
 * read an answer. Nothing is looked up in the file system: there are as many addresses as things to
 * serve.
 *
 * Connections that ask nothing keep nobody out: above some two hundred the one that has been silent
 * for longest is closed, and all of them after ten seconds without a byte.
 *
 * Threads: requests are answered by one thread of the library, which is also told of connections;
 * what it reads does not change meanwhile.
 */
#ifndef FM_VIEW_SERVER_H
#define FM_VIEW_SERVER_H

#include <stdint.h>

#include "show/view/contents.h"

/* More bytes of single calls are fetched when they come into sight. */
#define FM_SERVED_EVENTS ((uint64_t)2 << 20)

struct fm_server;

/* `port` 0: any that is free. `contents` must outlive the server. */
struct fm_server *fm_server_start(const struct fm_contents *contents, uint16_t port,
                                  struct fm_error *err);
void fm_server_stop(struct fm_server *server);

const char *fm_server_address(const struct fm_server *server); /* "http://127.0.0.1:1234/…/" */
uint16_t fm_server_port(const struct fm_server *server);

#endif
