/* name_server.h - answers the DNS queries of a box.
 *
 * Names that the policy allows, at any port, get the addresses that stand for
 * them in the box (names.h). All others do not exist, or, if a person may be
 * asked about them, get addresses too. Nothing is resolved outside: a query
 * sends no byte out of the machine, so DNS is no way out.
 *
 * Limit: names that no entry allows fill no more than half of the table. */
#ifndef MO_EGRESS_NAME_SERVER_H
#define MO_EGRESS_NAME_SERVER_H

#include "egress/names.h"

#define MO_EGRESS_TTL_S 60

struct mo_egress_zone {
    const struct mo_egress_policy *policy;
    struct mo_egress_names *names;
    bool v6;  /* the box has IPv6 */
    bool ask; /* a person may be asked about other names */
};

/* Writes the answer; false: the bytes are not a query and get none. */
bool mo_egress_answer(const struct mo_egress_zone *z, struct mo_span query,
                      struct mo_buf *out);

#endif
