/* grant.h - a personal token: what a random secret stands for.
 *
 * The text that its owner gets, once, is "mop_ID_SECRET". The id is public: it
 * is shown in lists and in the audit log. Of the whole text only the SHA-256 is
 * kept; the secret is random, so it needs no slow hash.
 *
 * A grant never gives more than its owner has: see mo_gate_check(). It always
 * expires. Pure: grants.h keeps them. */
#ifndef MO_PEOPLE_GRANT_H
#define MO_PEOPLE_GRANT_H

#include "base/rand.h"
#include "codec/sha256.h"
#include "people/access_token.h"

#define MO_GRANT_PREFIX    "mop_"
#define MO_GRANT_ID        MO_TOKEN_LEN(16) /* characters */
#define MO_GRANT_SECRET    MO_TOKEN_LEN(24)
#define MO_GRANT_TEXT      (4 + MO_GRANT_ID + 1 + MO_GRANT_SECRET)
#define MO_GRANT_NAME_MAX  65 /* of its name and of a view, with the NUL */
#define MO_GRANT_VIEWS_MAX 8
#define MO_GRANT_DAYS      90 /* unless its maker says otherwise */
#define MO_GRANT_DAYS_MAX  365

struct mo_grant {
    char id[MO_GRANT_ID + 1];
    char owner[MO_PERSON_MAX]; /* "": the operator */
    char name[MO_GRANT_NAME_MAX];
    enum mo_role role; /* at most */
    char views[MO_GRANT_VIEWS_MAX][MO_GRANT_NAME_MAX];
    size_t nviews;                   /* 0: not bound to views */
    uint64_t created, expires, used; /* wall ms; used 0: never */
    char hash[MO_SHA256_HEX + 1];    /* of the text */
};

/* True if it has the form of a grant's text. */
bool mo_grant_looks_like(struct mo_span text);
/* The id in a text that has the form. */
struct mo_span mo_grant_id_of(struct mo_span text);
/* True if that is its text; takes the same time for every text. */
bool mo_grant_is(const struct mo_grant *g, struct mo_span text);
/* Sets id, hash and created, and writes the text. */
void mo_grant_make(struct mo_grant *g, char text[MO_GRANT_TEXT + 1]);

/* A name may have any visible characters; a view's is as in a path. */
int mo_grant_set_name(struct mo_grant *g, struct mo_json v, struct mo_err *e);
int mo_grant_set_views(struct mo_grant *g, struct mo_json v, struct mo_err *e);
bool mo_grant_has_view(const struct mo_grant *g, struct mo_span name);

/* Members of the open object, without the hash. */
void mo_grant_show(const struct mo_grant *g, struct mo_jw *w);
/* The stored document; MO_EPROTO: it is not one. */
void mo_grant_put(const struct mo_grant *g, struct mo_buf *doc);
int mo_grant_parse(struct mo_span id, struct mo_span doc, struct mo_grant *out,
                   struct mo_err *e);

#endif
