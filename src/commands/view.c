/*
 * `fathom view`: recordings as pages in the browser, served from here or written as one file.
 */
#include <getopt.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/convert_choice.h"
#include "commands/inputs.h"
#include "commands/verb.h"
#include "record/formats/sources.h"
#include "show/view/browser.h"
#include "show/view/contents.h"
#include "show/view/onefile.h"
#include "show/view/server.h"

#define MAX_FILES 16

static const char help[] =
    "Usage: fathom view [OPTION…] FILE…\n"
    "Show recordings as pages in the browser. Several files can be compared there.\n"
    "\n"
    "  -o, --output OUT    do not serve: write one HTML file that opens anywhere, offline\n"
    "  -f, --force         overwrite OUT if it exists\n"
    "      --from TIME     OUT has single calls of a trace behind this time: 1.5s, 20ms\n"
    "      --to TIME       … and before this one; of the rest it has an overview\n"
    "      --port N        serve on this port of this machine; any that is free if not given\n"
    "      --no-browser    do not open a browser, only print the address\n"
    "  -h, --help          this text\n"
    "\n"
    "Nobody but this machine can reach the server. Ctrl-C ends it.\n";

struct view_request {
    const char *output;
    uint16_t port;
    bool force, no_browser;
    bool ranged;
    uint64_t from_ns, to_ns;
};

static const struct option options[] = {
    { "output", required_argument, NULL, 'o' }, { "force", no_argument, NULL, 'f' },
    { "port", required_argument, NULL, 'p' },   { "no-browser", no_argument, NULL, 'n' },
    { "from", required_argument, NULL, 'F' },   { "to", required_argument, NULL, 'T' },
    { "help", no_argument, NULL, 'h' },         { 0 },
};

static bool read_port(const char *text, uint16_t *port)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    *port = (uint16_t)number;
    return *text >= '0' && *text <= '9' && !*end && number > 0 && number < 65536;
}

/* What is not a whole recording of ours is opened, and brought into that form. */
static int convert_file(const char *path, const char *name, struct fm_contents *contents,
                        struct fm_error *err)
{
    char *one[] = { (char *)path, NULL };
    struct fm_profile *p = fm_inputs_open(one, false, FM_FILE_ALL, err);
    if (!p)
        return err->status;
    fm_inputs_warn("view", p);
    fm_sources_embed(p);
    int status = fm_contents_add(contents, name, p, err);
    fm_profile_free(p);
    return status < 0 ? fm_error_context(err, "reading %s", path) : 0;
}

static int open_files(char *const *files, struct fm_contents *contents, struct fm_error *err)
{
    for (size_t i = 0; files[i]; i++) {
        const char *slash = strrchr(files[i], '/');
        const char *name = slash && slash[1] ? slash + 1 : files[i];
        if (!fm_contents_add_file(contents, name, files[i]) &&
            convert_file(files[i], name, contents, err) < 0)
            return err->status;
    }
    return 0;
}

/* How to get here from where the browser is. */
static void print_ssh(uint16_t port)
{
    char host[256] = "";
    const struct passwd *user = getpwuid(getuid());
    gethostname(host, sizeof host - 1);
    printf("To look at it from another machine, type there\n"
           "    ssh -C -L %u:127.0.0.1:%u %s%s%s\n"
           "and open the same address.\n",
           port, port, user ? user->pw_name : "", user ? "@" : "", *host ? host : "HOST");
}

static int serve(const struct view_request *q, const struct fm_contents *contents,
                 struct fm_error *err)
{
    sigset_t ends;
    int received;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* before the server's thread begins, which inherits it */
    signal(SIGPIPE, SIG_IGN);
    struct fm_server *server = fm_server_start(contents, q->port, err);
    if (!server)
        return err->status;
    bool browser = !q->no_browser && fm_browser_exists();
    printf("%s\n", fm_server_address(server));
    if (browser)
        browser = fm_browser_open(fm_server_address(server));
    if (!browser && !q->no_browser)
        print_ssh(fm_server_port(server));
    printf("Ctrl-C ends it.\n");
    fflush(stdout);
    sigwait(&ends, &received);
    fm_server_stop(server);
    return 0;
}

/* What of a recording is not in its report. */
static void say_left_out(const struct fm_content *content, bool ranged)
{
    unsigned long long bytes = content->left_out;
    if (!bytes)
        return;
    fprintf(stderr, "fathom view: the report has an overview of %s and %s: ", content->name,
            content->from_ns < content->to_ns ? "single calls of the time that was asked for"
            : ranged                          ? "no single calls, it ends before that time"
                                              : "no single calls");
    fprintf(stderr, "the others would add %llu.%llu MB; %s`fathom view` without -o shows all\n",
            bytes / 1000000, bytes / 100000 % 10, ranged ? "" : "--from and --to bring some, and ");
}

static int view(const struct view_request *q, char *const *files)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_contents contents = { .most_events = q->output ? FM_ONEFILE_EVENTS : FM_SERVED_EVENTS,
                                    .elsewhere = !q->output,
                                    .ranged = q->ranged,
                                    .from_ns = q->from_ns,
                                    .to_ns = q->to_ns };
    int status = open_files(files, &contents, &err);
    if (status == 0)
        status = q->output ? fm_onefile_write(&contents, q->output, q->force, &err)
                           : serve(q, &contents, &err);
    for (size_t i = 0; status == 0 && q->output && i < contents.files.len; i++)
        say_left_out(&contents.files.data[i], q->ranged);
    fm_contents_release(&contents);
    return status < 0 ? fm_verb_fail("view", &err) : 0;
}

int fm_verb_view(int argc, char **argv)
{
    struct view_request q = { .to_ns = UINT64_MAX };
    int option;
    opterr = 0;
    optind = 0;
    while ((option = getopt_long(argc, argv, ":o:fh", options, NULL)) != -1) {
        if (option == 'o')
            q.output = optarg;
        else if (option == 'f')
            q.force = true;
        else if (option == 'n')
            q.no_browser = true;
        else if (option == 'h')
            return fputs(help, stdout) < 0;
        else if (option == 'F' || option == 'T') {
            if (!fm_convert_time(optarg, option == 'F' ? &q.from_ns : &q.to_ns))
                return fm_verb_usage("view", "%s takes a time of the run (1.5s, 20ms), not \"%s\"",
                                     option == 'F' ? "--from" : "--to", optarg);
            q.ranged = true;
        } else if (option == 'p' && !read_port(optarg, &q.port))
            return fm_verb_usage("view", "\"%s\" is no port: a number from 1 to 65535", optarg);
        else if (option == ':' || option == '?')
            return fm_verb_usage("view",
                                 option == ':' ? "%s needs a value" : "there is no option %s",
                                 argv[optind - 1]);
    }
    if (!argv[optind])
        return fm_verb_usage("view", "name at least one recording");
    if (q.ranged && !q.output)
        return fm_verb_usage("view",
                             "--from and --to say what -o writes; the page that is served has all");
    if (q.from_ns >= q.to_ns)
        return fm_verb_usage("view", "--from is not before --to");
    if (argc - optind > MAX_FILES)
        return fm_verb_usage("view", "at most %d recordings at once", MAX_FILES);
    return view(&q, argv + optind);
}
