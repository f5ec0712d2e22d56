/* share.h - who may read a conversation that is not theirs, as a document
 * beside the session's row in the store (MO_WRITE_SHARE):
 *
 *   [{"with":"corp/leads","may":"approve","at":1763330000000,"by":"corp:ann"}]
 *
 * `with` is a text of identity.h. Readers see the conversation and its events.
 * Approvers also decide about its calls, as its owner does; they cannot talk.
 * Where several entries mean a person, the most that one of them permits
 * counts. A document that cannot be read permits nothing.
 *
 * Limit: MO_SHARES_MAX entries. */
#ifndef MO_PEOPLE_SHARE_H
#define MO_PEOPLE_SHARE_H

#include "people/identity.h"

#define MO_SHARES_MAX       64
#define MO_SHARES_BYTES_MAX ((size_t)64 * 1024)

enum mo_share { MO_SHARE_NONE, MO_SHARE_READ, MO_SHARE_APPROVE };

const char *mo_share_name(enum mo_share s); /* "none", "read", "approve" */
/* -1: no such name. */
int mo_share_named(struct mo_json name);

/* The right that the document gives this person. */
enum mo_share mo_share_of(struct mo_span doc, const struct mo_identity *who);

struct mo_share_change {
    struct mo_span with; /* checked (mo_identity_check()) */
    enum mo_share may;   /* MO_SHARE_NONE: withdrawn */
    const char *by;      /* who shares it */
    uint64_t at;         /* wall ms */
};
/* Appends the changed document. MO_ENOTFOUND: there is nothing to withdraw;
 * MO_EBUSY: too many entries. */
int mo_shares_change(struct mo_span doc, const struct mo_share_change *c,
                     struct mo_buf *out, struct mo_err *e);

#endif
