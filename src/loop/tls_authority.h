/* tls_authority.h - a certificate authority of this installation, for hosts
 * whose TLS ends in this process.
 *
 * There is one private key, in a file with mode 0600. Its certificates are made
 * when they are needed:
 *
 *  - one for the clients that shall trust it, by a list of names. It is valid
 *    for these names and those below them and for nothing else: name
 *    constraints, critical, addresses excluded; no further authority.
 *  - short-lived ones for a host, each with a key of its own that is only in
 *    memory.
 *
 * The subject of the first kind is derived from the key and the names. So a
 * client that trusts such a certificate accepts what a later process issues
 * for the same names, and nothing that is issued for other lists.
 *
 * Limits: MO_TLS_NAMES_MAX names of at most 253 bytes, letters, digits, '-',
 * '_' and '.'; the caller checks them. */
#ifndef MO_LOOP_TLS_AUTHORITY_H
#define MO_LOOP_TLS_AUTHORITY_H

#include "loop/tls.h"

#define MO_TLS_NAMES_MAX 64
#define MO_TLS_LEAF_MS   ((uint64_t)12 * 3600 * 1000) /* issue again then */
#define MO_TLS_LIST_ID   17                           /* hex and NUL */

struct mo_tls_authority;

/* The names may be in any order and repeated. */
struct mo_tls_names {
    const char *v[MO_TLS_NAMES_MAX];
    size_t n;
};

/* Reads the key, or creates it. The file must be ours, and nobody else may read
 * it. */
int mo_tls_authority_open(const char *key_file, struct mo_tls_authority **out,
                          struct mo_err *e);
void mo_tls_authority_free(struct mo_tls_authority *a); /* NULL is fine */

/* An id of the key and the names. */
void mo_tls_authority_id(const struct mo_tls_authority *a,
                         const struct mo_tls_names *names,
                         char out[MO_TLS_LIST_ID]);
/* Appends the certificate to be trusted, in PEM. */
int mo_tls_authority_cert(const struct mo_tls_authority *a,
                          const struct mo_tls_names *names, struct mo_buf *pem,
                          struct mo_err *e);
/* A server's context for `host`, which is one of the names. Valid for a day. */
struct mo_tls_ctx *mo_tls_authority_server(const struct mo_tls_authority *a,
                                           const struct mo_tls_names *names,
                                           const char *host, struct mo_err *e);

#endif
