/* audit_row.h - builds the rows of the audit log: JSON objects that say what
 * happened, to which tool, and who decided. Nobody else builds rows.
 *
 * Five kinds: a call through the gateway, a choice of the router, a lookup that
 * ran nothing, a connection of a box, and struct mo_audit_row for everything
 * that a person or an attacker did. Errors are the buffer's (sticky).
 *
 * A row goes to the log by mo_audit_call() and its like (audit.h), or as a
 * write to the store (mo_audit_row_write()), together with what it is about. */
#ifndef MO_AUDIT_AUDIT_ROW_H
#define MO_AUDIT_AUDIT_ROW_H

#include "audit/gateway_call.h"
#include "egress/relay.h"
#include "store/store.h"

/* Members that are NULL, empty or 0 are left out. */
struct mo_audit_row {
    const char *event;      /* what was done: "accepted", "refused", ... */
    struct mo_span subject; /* value of that member */
    struct mo_span name, server, session, tool, call;
    struct mo_span app;               /* URI of the app that made the call */
    struct mo_span args, plan, entry; /* JSON */
    const char *args_before; /* digest of args before a person changed them */
    struct mo_span changed, waiting; /* JSON: keys of the configuration */
    const char *digest, *action, *by, *decided_by;
    const char *outcome, *reason;
    const char *via; /* member "door", of a row without a decision */
    struct mo_span who, peer, host, program, origin, path;
    uint64_t count;
    const char *script; /* SHA-256 of the script that made the call; or NULL */
    uint64_t line;      /* of that script; 0: unknown */
    const struct mo_door *door; /* of the decision */
    const bool *approved;
    const struct mo_audit_result { /* of a tool */
        bool is_error;
        uint64_t ms;
        struct mo_span content; /* JSON */
    } * result;
};

void mo_audit_row_put(struct mo_buf *b, const struct mo_audit_row *r);
/* The members "door" and "byRequester"; none if nobody decided. */
void mo_audit_row_put_door(struct mo_jw *w, const struct mo_door *d);
/* The row as a write to the store, now. */
struct mo_write mo_audit_row_write(struct mo_span row);
/* The same row with the owner of its conversation. */
void mo_audit_row_put_owner(struct mo_buf *b, const char *owner,
                            struct mo_span row);

enum mo_audit_step {
    MO_AUDIT_AGREED, /* a person approved; the call is about to run */
    MO_AUDIT_BEGUN,  /* the call leaves: a row of kind "call", no outcome yet */
    MO_AUDIT_DONE,
};
/* args: JSON; empty: only their digest. who: the person who decided, or
 * NULL. */
void mo_audit_row_call(struct mo_buf *b, enum mo_audit_step step,
                       const struct mo_gw_case *k, struct mo_span args,
                       const char *who);
void mo_audit_row_routing(struct mo_buf *b, const struct mo_gw_routing *r);

/* A connection of the box of a server or of a session; the other one is NULL.
 */
void mo_audit_row_connection(struct mo_buf *b, const char *server,
                             const char *session,
                             const struct mo_egress_row *r);

/* A box with folders of the host; server or session is NULL. */
struct mo_audit_mounts {
    const char *server, *session;
    const char *const *mounts; /* "HOST:BOX:ro", NULL at the end; or NULL */
    const char *workspace;     /* folder of the host that is kept, or NULL */
    const char *reason;        /* why the box was refused, or NULL */
};
void mo_audit_row_mounts(struct mo_buf *b, const struct mo_audit_mounts *m);

/* A query to the router that runs no tool: `find`, GET /api/route. The row has
 * the best three candidates with their scores, and three of the excluded tools
 * with the reasons. */
struct mo_audit_lookup {
    const char *via; /* "find", "/api/route" */
    struct mo_span who, words;
    struct mo_span answer; /* of mo_gateway_find() */
};
/* False: the answer is no JSON, there is no row. */
bool mo_audit_row_lookup(struct mo_buf *b, const struct mo_audit_lookup *l);

/* A row of the store as it is copied to the file: without results, and with
 * the digest of the arguments; whole: with the arguments too. False: it is no
 * JSON. */
bool mo_audit_row_for_file(struct mo_buf *b, struct mo_span row, bool whole);

#endif
