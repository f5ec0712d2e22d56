/* people.h - who is who: the providers of this server and the people they know.
 *
 * web/gate.h asks it about credentials that are no tokens of the configuration.
 * An answer may need a provider's keys first: then the asker waits for them and
 * asks again.
 *
 * Ownership: the configuration is referenced, the loop borrowed. */
#ifndef MO_PEOPLE_PEOPLE_H
#define MO_PEOPLE_PEOPLE_H

#include "people/introspect.h"

/* Member of the metadata of /mcp that lists the providers by name, for
 * `mcp-orchestrator login` (connect/remote.h). */
#define MO_PEOPLE_PROVIDERS "sign_in_providers"

struct mo_people;
struct mo_logins; /* people/login.h */

int mo_people_new(struct mo_loop *l, const struct mo_config *c,
                  struct mo_people **out, struct mo_err *e);
/* Tokens are checked again. On failure the old configuration stays. */
int mo_people_reload(struct mo_people *p, const struct mo_config *c,
                     struct mo_err *e);
void mo_people_close(struct mo_people *p, void (*gone)(void *ctx), void *ctx);

/* The address of this server, without a path, for when people.url is not
 * set. */
int mo_people_set_url(struct mo_people *p, const char *url, struct mo_err *e);
const char *mo_people_url(const struct mo_people *p);
/* The address of /mcp, which access tokens must name as their audience. */
const char *mo_people_resource(const struct mo_people *p);
/* Remember proofs there, together with other workers; borrowed. */
struct mo_proofs_shared;
void mo_people_share(struct mo_people *p, struct mo_proofs_shared *proofs);
bool mo_people_has_providers(const struct mo_people *p);
/* The configuration in use; borrowed until the next reload. */
const struct mo_config *mo_people_config(const struct mo_people *p);

struct mo_logins *mo_people_logins(const struct mo_people *p);
struct mo_httpc *mo_people_http(const struct mo_people *p); /* borrowed */

/* True if the person was seen as a member of "PROVIDER/GROUP", by a login or a
 * token that is still good. */
bool mo_people_member(const struct mo_people *p, const char *name,
                      struct mo_span entry);
/* Appends all their groups, without the provider, each with a line end. Those
 * that do not fit are left out. */
void mo_people_groups(const struct mo_people *p, const char *name,
                      struct mo_buf *out);

/* True if a provider may know the token: it is signed, or a provider is asked
 * about others (introspect.h). */
bool mo_people_may_know(const struct mo_people *p, struct mo_span token);
/* As mo_access_token_check(), and MO_EBUSY as mo_introspect_check(). */
int mo_people_check(struct mo_people *p, struct mo_span token,
                    struct mo_person *out, struct mo_provider **from,
                    struct mo_err *e);
/* 0: the sender may use the token: it needs no proof, or has one. As
 * mo_proof_check(); sets url and now_s. */
int mo_people_prove(struct mo_people *p, const struct mo_person *who,
                    struct mo_proof *in, struct mo_err *e);
/* After MO_EUNAVAIL: begins to find out what the check needs. */
void mo_people_find_out(struct mo_people *p, struct mo_span token,
                        struct mo_provider *from, struct mo_provider_wait *w);
/* The provider of that name and its configuration; NULL: none. */
struct mo_provider *mo_people_provider(const struct mo_people *p,
                                       struct mo_span name,
                                       const struct mo_config_provider **c);

#endif
