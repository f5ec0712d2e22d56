/* token.h - the bearer token of an access, and its renewal.
 *
 * A token is a text of the kubeconfig, the content of a file that is replaced
 * from time to time (read again when it has changed), or the output of a
 * plugin, which is run when there is no token or the last one has expired. The
 * token of a plugin is used for USE_S at least.
 *
 * A plugin has our environment; variables of the kubeconfig replace ours.
 *
 * Limits: a plugin has PLUGIN_MS and MO_KUBE_TOKEN_MAX bytes of output, and is
 * not run (MO_ETOOBIG) if our environment has more than ENV_MAX variables. A
 * plugin that answers with a client certificate is refused. */
#ifndef MO_KUBE_TOKEN_H
#define MO_KUBE_TOKEN_H

#include "kube/access.h"
#include "loop/stream.h"

struct mo_kube_token;

/* The access is borrowed. */
struct mo_kube_token *mo_kube_token_new(struct mo_loop *l,
                                        const struct mo_kube_access *a,
                                        struct mo_err *e);
/* No request may be under way but those of tokens: they end with
 * MO_ECANCELED, from inside this call. */
void mo_kube_token_free(struct mo_kube_token *t);

/* 0: *out is the token, borrowed until the next call; empty: none is needed.
 * MO_EBUSY: it is being renewed; go() of the waiter fires once, later. */
struct mo_kube_token_wait {
    struct mo_list node;
    void (*go)(struct mo_kube_token_wait *w, const struct mo_err *why);
};
int mo_kube_token_get(struct mo_kube_token *t, struct mo_span *out,
                      struct mo_kube_token_wait *w, struct mo_err *e);
/* The cluster has refused it. False: there is no way to get another. */
bool mo_kube_token_drop(struct mo_kube_token *t);

/* Reads an ExecCredential: appends its token; *expires: wall s, 0: never. */
int mo_kube_token_read(struct mo_span text, struct mo_buf *token,
                       uint64_t *expires, struct mo_err *e);

#endif
