/* tls_keystore.h - trusted certificates as Java wants them.
 *
 * Java reads no PEM files. Its old format JKS is a list of certificates with a
 * checksum at the end, which depends on a password; as everywhere this is
 * "changeit". All versions of Java read it. */
#ifndef MO_LOOP_TLS_KEYSTORE_H
#define MO_LOOP_TLS_KEYSTORE_H

#include "base/str.h"

/* Appends the certificates of a PEM text. */
int mo_tls_keystore(struct mo_span pem, struct mo_buf *out, struct mo_err *e);

#endif
