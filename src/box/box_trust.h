/* box_trust.h - the certificates that programs in a box trust.
 *
 * If the relay ends TLS for a host (egress/edge.h), programs must trust the
 * authority of this installation. The directory bs->authority_dir holds
 *
 *   key.pem                   its key, 0600
 *   ID/ca-certificates.crt    the system's certificates, and one that is valid
 *                             for the hosts of ID only
 *   ID/cacerts                the same for Java, if it is wanted
 *
 * A box sees the files of its ID (codec/ca_files.h), never the key. They are
 * written again when they are a day old or the system's have changed; a running
 * box keeps those that it was started with. */
#ifndef MO_BOX_BOX_TRUST_H
#define MO_BOX_BOX_TRUST_H

#include "box/driver.h"
#include "codec/boxreq.h"
#include "loop/tls_authority.h"

#define MO_BOX_TRUST_MAX (MO_BOXREQ_PATH_MAX + 1)

/* Opens bs->authority, if the policy needs it. */
int mo_box_trust_open(struct mo_boxes *bs, const struct mo_egress_policy *p,
                      struct mo_err *e);
/* Writes the directory of a box of this policy; "": it needs none. java: with
 * the keystore also if this machine has no Java. */
int mo_box_trust_write(struct mo_boxes *bs, const struct mo_egress_policy *p,
                       bool java, char out[MO_BOX_TRUST_MAX], struct mo_err *e);

#endif
