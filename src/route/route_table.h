/* route_table.h - the router's vectors, embedded in this program.
 *
 * scripts/embed puts data/route into the program; data/route/README.md has its
 * origin and licence. Unused pages are never read from disk. */
#ifndef MO_ROUTE_ROUTE_TABLE_H
#define MO_ROUTE_ROUTE_TABLE_H

#include "base/str.h"

extern const char mo_helper_route_table[], mo_helper_route_table_end[];
extern const char mo_helper_route_pieces[], mo_helper_route_pieces_end[];

static inline struct mo_span mo_route_table(void)
{
    return mo_span(mo_helper_route_table,
                   (size_t)(mo_helper_route_table_end - mo_helper_route_table));
}

static inline struct mo_span mo_route_pieces(void)
{
    return mo_span(mo_helper_route_pieces, (size_t)(mo_helper_route_pieces_end -
                                                    mo_helper_route_pieces));
}

#endif
