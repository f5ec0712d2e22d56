/* list.h - the objects of a namespace with a label, listed in parts.
 *
 * A list is asked for MO_KUBE_PART objects at a time (`limit`); each answer
 * but the last says where the next begins (`continue`). The cluster remembers
 * that place for some minutes; after that it answers 410. Then the list begins
 * again, or goes on at the place which that answer names: there the objects
 * are those of now, so a list in which nothing may be missed begins again.
 *
 * Paths and places only; api.h sends them. */
#ifndef MO_KUBE_LIST_H
#define MO_KUBE_LIST_H

#include "kube/api.h"

#define MO_KUBE_PART      500
#define MO_KUBE_PLACE_MAX 640

/* kind: its plural in the API. selector: as it stands in a query. place: of
 * the answer before; "": the first part. */
int mo_kube_list_path(char out[MO_KUBE_PATH_MAX], const char *ns,
                      const char *kind, const char *selector, const char *place,
                      struct mo_err *e);
/* The place in a list, or in the answer 410. "": there is none, so the list is
 * complete or has to begin again. MO_ETOOBIG: it is longer than a place. */
int mo_kube_list_place(struct mo_json answer, char out[MO_KUBE_PLACE_MAX],
                       struct mo_err *e);

#endif
