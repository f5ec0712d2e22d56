/* box_files.h - requests about the files of a session, sent to its box.
 *
 * The toolbox in the box does the work (docs/toolbox.md): this process never
 * sees the box's tree. The session may be open in another process of the store:
 * that one is asked then, over the relay (relay.h), one request at a time. It
 * believes the process that asks, which has judged the person.
 *
 *   here:  hold the session -> its connection -> "mo/files/METHOD"
 *   there: POST /api/sessions/ID/files/ask {method, owner, arguments,
 *          visits?}
 *
 * A box that sleeps is started, unless the sender only visits: a reader of a
 * shared conversation gets 409, "asleep". The session is held, and not idle,
 * until mo_box_files_free().
 *
 * One request at a time. done() is called once, later, and not after free. */
#ifndef MO_WEB_BOX_FILES_H
#define MO_WEB_BOX_FILES_H

#include "web/api.h"

struct mo_box_files;

struct mo_box_files_no { /* why there is no answer */
    int status;          /* of HTTP */
    char code[32];
    char text[240];
};

/* result: an object, borrowed. no: NULL if there is one. */
typedef void mo_box_files_fn(void *ctx, struct mo_json result,
                             const struct mo_box_files_no *no);

/* owner: of the session; "": none. The sender of rq is named to another
 * process. */
struct mo_box_files *mo_box_files_new(struct mo_api *api,
                                      const struct mo_req *rq, const char *id,
                                      const char *owner);
/* The sender does not own the session: no box is started. */
void mo_box_files_visit(struct mo_box_files *f);
/* Drops the request under way, if there is one. */
void mo_box_files_free(struct mo_box_files *f);

/* method: "list", "read", ...; args: the text of an object. Both are copied. */
void mo_box_files_ask(struct mo_box_files *f, const char *method,
                      struct mo_span args, mo_box_files_fn *done, void *ctx);

/* Answers a request of another process. False: it is not one of these. */
bool mo_box_files_relayed(struct mo_api *api, struct mo_req *rq);

#endif
