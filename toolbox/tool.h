/* tool.h - a tool, and its view of a call.
 *
 * A tool gets a call with its arguments and ends it exactly once: by returning
 * an error, by tb_call_done() inside run(), or by tb_call_done() or
 * tb_call_fail() later. For the last it sets call->cancel before run() returns
 * 0. cancel() means that the peer no longer waits: the tool stops its work and
 * forgets the call, which is freed when cancel() returns.
 *
 * Tools know no protocol revision; the server leaves out what a peer is too old
 * for. */
#ifndef TB_TOOL_H
#define TB_TOOL_H

#include "base/list.h"
#include "toolbox/era.h"
#include "toolbox/field.h"

/* A result with text and data stays below the 4 MiB line that peers accept,
 * even if every byte is escaped: each holds at most 256 KiB of peer bytes, six
 * characters per byte. */
#define TB_RESULT_MAX ((size_t)4 * 1024 * 1024)
#define TB_BYTES_MAX  ((size_t)256 * 1024)

/* Arguments of one call: the unescaped content of a line. */
#define TB_ARGS_MAX ((size_t)10 * 1024 * 1024)

enum { /* hints: properties a client may rely on */
       TB_READ_ONLY = 1 << 0,
       TB_DESTRUCTIVE = 1 << 1,
       TB_IDEMPOTENT = 1 << 2,
       TB_OPEN_WORLD = 1 << 3,
};

enum tb_level { /* of log messages, in the order of syslog */
                TB_DEBUG,
                TB_INFO,
                TB_NOTICE,
                TB_WARNING,
                TB_ERROR,
                TB_CRITICAL,
                TB_ALERT,
                TB_EMERGENCY,
                TB_SILENT, /* not a level: send nothing */
};

struct tb_call;

struct tb_tool {
    const char *name, *title, *what;
    unsigned hints;
    const struct tb_field *in, *out;
    int (*run)(void *ctx, struct tb_call *c, struct mo_json args,
               struct mo_err *e);
};

struct tb_server;

struct tb_call {
    struct mo_list node;
    struct tb_server *server;
    const struct tb_tool *tool;
    enum tb_version version;
    enum tb_level level;
    struct mo_span id, token; /* JSON text; token may be empty */
    struct mo_json meta;      /* _meta of the request; borrowed by run() */
    uint64_t progress;        /* last number sent */

    /* set by the tool */
    void (*cancel)(struct tb_call *c);
    void *job;
};

struct tb_result {
    struct mo_buf text; /* for the model */
    struct mo_buf data; /* a JSON object that matches the tool's out */
    bool failed;        /* isError */
};

void tb_result_init(struct tb_result *r);
void tb_result_fini(struct tb_result *r);

void tb_call_done(struct tb_call *c, const struct tb_result *r);
void tb_call_fail(struct tb_call *c, const struct mo_err *e);

/* True if the peer wants output before the end. */
bool tb_call_is_live(const struct tb_call *c);
/* Report new output of a stream: its text, and the bytes it stands for. */
void tb_call_live(struct tb_call *c, const char *stream, struct mo_span text,
                  uint64_t bytes);

/* A notification that begins with the call's progress token: the caller adds
 * members, then ends it. Not from a method, whose answer is being written. */
void tb_note_begin(struct tb_call *c, struct mo_jw *w, const char *method);
void tb_note_end(struct tb_call *c, struct mo_jw *w);

#endif
