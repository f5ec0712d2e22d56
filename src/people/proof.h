/* proof.h - checks that the sender of a bound token holds its key (RFC 9449).
 *
 * The provider binds a token to a key (`cnf.jkt` is the key's thumbprint). Each
 * request then carries a proof that the key signed: for its method and address,
 * for this token, made just now, and used once. A token without a proof is as
 * good as stolen, and refused.
 *
 * Ids of proofs are remembered for at least twice MO_PROOF_WINDOW_S, by this
 * process, or by all workers of one server together (proofs_shared.h). Another
 * replica would accept a proof again within the window.
 *
 * Limit: MO_PROOFS_MAX proofs in that time; MO_EBUSY beyond. */
#ifndef MO_PEOPLE_PROOF_H
#define MO_PEOPLE_PROOF_H

#include "base/map.h"
#include "codec/json/json.h"
#include "mcp/oauth/dpop.h"

#define MO_PROOF_WINDOW_S 60 /* between the proof's time and ours */
#define MO_PROOFS_MAX     ((size_t)128 * 1024)
#define MO_PROOF_ID_MAX   256
#define MO_PROOF_JKT      MO_DPOP_JKT
/* The algorithms of codec/jwt.h, as the challenge names them. */
#define MO_PROOF_ALGS     "RS256 ES256 EdDSA"

struct mo_proofs_shared; /* proofs_shared.h */

struct mo_proofs {
    struct mo_map now, before; /* key and id -> seen; before: the older ones */
    uint64_t since_s;          /* of `now` */
    struct mo_proofs_shared *shared; /* in their place; or NULL */
};

struct mo_proof {
    bool sent;           /* the token came with the scheme DPoP */
    struct mo_span text; /* the header DPoP; empty: none */
    struct mo_span method, path, token;
    const char *url; /* the server's own address, before the path */
    uint64_t now_s;  /* wall clock */
    bool passed_on;  /* another worker has checked it: it is used already */
};

void mo_proofs_init(struct mo_proofs *p);
void mo_proofs_fini(struct mo_proofs *p);

/* Reads the thumbprint from the claims of a token; "": it is not bound.
 * MO_EPOLICY: it is bound to something that is not checked here. */
int mo_proof_binding(struct mo_json claims, char jkt[MO_PROOF_JKT + 1],
                     struct mo_err *e);
/* 0: the sender may use a token with that binding. MO_EPOLICY: refused. */
int mo_proof_check(struct mo_proofs *p, const struct mo_proof *in,
                   const char *jkt, struct mo_err *e);

#endif
