/*
 * The command line of `fathom graph`.
 */
#ifndef FM_COMMANDS_GRAPH_OPTIONS_H
#define FM_COMMANDS_GRAPH_OPTIONS_H

#include "base/error.h"
#include "base/vec.h"
#include "show/graph/dot.h"
#include "show/graph/render.h"

enum fm_graph_by { FM_GRAPH_OF_ALL, FM_GRAPH_BY_THREAD, FM_GRAPH_BY_PROCESS, FM_GRAPH_BY_RANK };

struct fm_graph_options {
    char *const *files;
    const char *output;
    enum fm_graph_format format;
    bool force;
    enum fm_graph_by by;
    int64_t process, thread; /* ids, or -1 */
    bool cpu;                /* only time on a processor */
    const char *metric;      /* weigh by this and not by time; or NULL */
    int64_t max_nodes;       /* of a picture */
    const char *list;        /* list the functions that this glob names, draw nothing; or NULL */
    bool compare;
    enum fm_graph_measure measure;
    struct fm_graph_filter filter;
    FM_VEC(const char *) paths; /* NULL-terminated, once parsed */
    struct fm_graph_look look;
    bool help; /* the help was asked for */
};

/* FM_USAGE with a sentence if the command line is wrong. */
int fm_graph_options_parse(struct fm_graph_options *o, int argc, char **argv, struct fm_error *err);
void fm_graph_options_release(struct fm_graph_options *o);
const char *fm_graph_options_help(void);

#endif
