/* plan_parts.h - what the files of plan.h share; private to them. */
#ifndef MO_INSTALL_PLAN_PARTS_H
#define MO_INSTALL_PLAN_PARTS_H

#include "install/plan.h"

/* A copy in the plan's arena; NULL: no memory. */
const char *mo_plan_keep(struct mo_install_plan *p, struct mo_span s);

/* The text of a member, in the arena; NULL: none, or not usable. */
const char *mo_plan_text(struct mo_install_plan *p, struct mo_json obj,
                         const char *key);

/* Appends a reference to the secret SERVER.NAME; returns that name, or NULL: no
 * memory. */
const char *mo_plan_put_secret(struct mo_install_plan *p, struct mo_span name,
                               struct mo_buf *b);

/* Names the server: as, or the last part of from with '-' for characters that
 * no server's name has. */
int mo_plan_name(struct mo_install_plan *p, struct mo_span from, const char *as,
                 struct mo_err *e);

/* A package, image or address. as: the name of the configured server, or NULL:
 * made from it. */
int mo_plan_take_npm(struct mo_install_plan *p, struct mo_span s,
                     const char *as, struct mo_err *e);
int mo_plan_take_pypi(struct mo_install_plan *p, struct mo_span s,
                      struct mo_span version, const char *as, struct mo_err *e);
int mo_plan_take_mcpb(struct mo_install_plan *p, struct mo_span url,
                      struct mo_span sha256, const char *as, struct mo_err *e);
int mo_plan_take_image(struct mo_install_plan *p, struct mo_span s,
                       const char *as, struct mo_err *e);
int mo_plan_take_url(struct mo_install_plan *p, struct mo_span s,
                     const char *as, struct mo_err *e);

#endif
