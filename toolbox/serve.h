/* serve.h - the main loop: lines from stdin, lines to stdout.
 *
 * Reading stops while more than HIGH bytes wait to be written: first new
 * requests are not read, then the output of commands, which then block. A line
 * over TB_LINE_MAX is discarded to its end and answered with an error,
 * under the id of the request if it can be read; the stream goes on. All
 * children are reaped, including orphans of others when we are process 1.
 *
 * Commands run as the same user. The process is not "dumpable", so they cannot
 * open its descriptors through /proc and write in its name, nor read its
 * memory.
 *
 * It ends at the end of stdin, at SIGTERM or SIGINT, and when nobody reads
 * stdout; with `stay` only at the signals. Everything it started ends first. */
#ifndef TB_SERVE_H
#define TB_SERVE_H

#include "base/err.h"

/* The largest file to write, with every second byte escaped. */
#define TB_LINE_MAX ((size_t)24 * 1024 * 1024)

struct tb_serve_opts {
    const char *root;
    bool stay;
};

int tb_serve(const struct tb_serve_opts *o, struct mo_err *e);

#endif
