/* trace_priv.h - shared by the files of trace/. */
#ifndef MO_TRACE_TRACE_PRIV_H
#define MO_TRACE_TRACE_PRIV_H

#include "base/pool.h"
#include "trace/trace.h"

#define TRACE_BATCH    512u /* spans of one export */
#define TRACE_PAUSE_MS 2000u
#define TRACE_RANDOM   256

enum attr_kind { ATTR_TEXT, ATTR_INT, ATTR_ONE };

struct trace_attr {
    const char *key;
    enum attr_kind kind;
    uint16_t at, n; /* ATTR_TEXT, ATTR_ONE: in texts */
    int64_t number;
};

struct mo_trace_span {
    struct mo_list node; /* in open or queue */
    struct mo_tracer *t;
    struct mo_trace_ids ids;
    uint8_t parent[8];
    bool has_parent, remote; /* remote: the parent is another program's */
    bool failed;
    enum mo_trace_kind kind;
    uint64_t began, ended; /* mo_now_ns() */
    char name[MO_TRACE_NAME_MAX];
    struct trace_attr attrs[MO_TRACE_ATTRS];
    unsigned nattrs, lost; /* lost: attributes left out */
    char texts[MO_TRACE_TEXTS_MAX];
    size_t ntexts;
};

struct mo_tracer {
    struct mo_loop *loop;
    struct mo_list open, queue;
    unsigned nopen, nqueue, nsending; /* nsending: in the current export */
    unsigned pause_ms;
    struct mo_timer timer;
    struct mo_pool spare;
    struct mo_export *export;
    enum mo_otlp_encoding encoding;
    struct mo_buf resource; /* key, NUL, value, NUL, ... */
    uint64_t threshold;     /* a random number below it is sampled */
    bool all;               /* every number is */
    unsigned forced, forced_left;
    uint64_t forced_at; /* the second that forced_left is for */
    uint8_t random[TRACE_RANDOM];
    size_t random_left;
    struct mo_tracer_stats stats;
    bool closing;
    struct mo_gone gone;
};

/* Writes the first n spans of the queue as the body of an export. */
int mo_otlp_spans(const struct mo_tracer *t, unsigned n, struct mo_buf *b);

#endif
