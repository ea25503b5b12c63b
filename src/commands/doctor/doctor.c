/*
 * `fathom doctor`: what works here, why not, and the command that would allow the rest. With a PID,
 * whether that process can be profiled. It changes nothing, unless asked to clear away what runs left.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "commands/doctor/doctor.h"
#include "commands/verb.h"

static const char help[] =
    "Usage: fathom doctor [OPTION…] [PID]\n"
    "Say what Fathom can do on this machine, or with process PID: which Pythons are there, what\n"
    "the system permits, and the command that would allow the rest.\n"
    "\n"
    "      --json         the same as JSON\n"
    "      --clear        remove the folders of runs that were cut off, nothing of runs that go on\n"
    "      --color WHEN   auto, always or never\n"
    "  -h, --help         this text\n"
    "\n"
    "Exit status: 0 everything works, 1 something is limited, 3 there is no process PID.\n";

enum { OPTION_JSON = 256, OPTION_CLEAR, OPTION_COLOR };

static const struct option options[] = {
    { "json", no_argument, NULL, OPTION_JSON },
    { "clear", no_argument, NULL, OPTION_CLEAR },
    { "color", required_argument, NULL, OPTION_COLOR },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

struct doctor_request {
    pid_t pid;
    bool json, clear;
    enum fm_color_mode color;
};

static bool parse_pid(const char *text, pid_t *pid)
{
    char *past;
    long value = strtol(text, &past, 10);
    *pid = (pid_t)value;
    return *text >= '0' && *text <= '9' && !*past && value > 0 && value <= 0x7fffffff;
}

/* -1 to go on, else the exit status. */
static int parse(int argc, char **argv, struct doctor_request *r)
{
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (c) {
        case OPTION_JSON:
            r->json = true;
            break;
        case OPTION_CLEAR:
            r->clear = true;
            break;
        case OPTION_COLOR:
            if (strcmp(optarg, "always") == 0)
                r->color = FM_COLOR_ALWAYS;
            else if (strcmp(optarg, "never") == 0)
                r->color = FM_COLOR_NEVER;
            else if (strcmp(optarg, "auto") != 0)
                return fm_verb_usage("doctor", "--color takes auto, always or never");
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            return fm_status_exit(FM_USAGE);
        }
    }
    if (argc - optind > 1)
        return fm_verb_usage("doctor", "it looks at one process at a time");
    if (optind < argc && !parse_pid(argv[optind], &r->pid))
        return fm_verb_usage("doctor", "\"%s\" is not the number of a process", argv[optind]);
    if (r->clear && (r->json || r->pid))
        return fm_verb_usage("doctor", "--clear goes alone");
    return -1;
}

int fm_verb_doctor(int argc, char **argv)
{
    struct doctor_request r = { .color = FM_COLOR_AUTO };
    int status = parse(argc, argv, &r);
    if (status >= 0)
        return status;
    if (r.clear)
        return fm_doctor_clear(stdout);
    struct fm_doctor *d = fm_calloc(1, sizeof *d);
    struct fm_error err = FM_ERROR_INIT;
    if (fm_doctor_gather(d, r.pid, &err) < 0) {
        status = fm_verb_fail("doctor", &err);
    } else {
        if (r.json)
            fm_doctor_json(d, stdout);
        else
            fm_doctor_page(d, fm_style_for(stdout, r.color, 0), stdout);
        status = fm_doctor_limited(d);
        if (fflush(stdout) || ferror(stdout)) {
            fm_error_set(&err, FM_CANNOT_WRITE, "the output cannot be written");
            status = fm_verb_fail("doctor", &err);
        }
    }
    fm_doctor_release(d);
    free(d);
    return status;
}
