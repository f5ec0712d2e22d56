/* identity.h - a person who sends a request, and the texts that mean persons.
 *
 *   alice            the person of that name in server.tokens
 *   corp:alice       the person whom the provider `corp` calls alice
 *   corp:*           everyone whom `corp` knows
 *   corp/admins      the members of that group, as their last sign-in said
 *   @approver        everyone with that role or a higher one
 *   *                everyone who has signed in
 *
 * Names are compared as they are in the audit log. Two names are two persons:
 * nothing here knows that one person has both. */
#ifndef MO_PEOPLE_IDENTITY_H
#define MO_PEOPLE_IDENTITY_H

#include "people/people.h"

struct mo_identity {  /* borrowed */
    const char *name; /* "": the operator, by server.token or locally */
    enum mo_role role;
    const struct mo_people *people; /* who know groups; or NULL */
};

/* True if the text means this person. */
bool mo_identity_is(const struct mo_identity *i, struct mo_span text);
/* MO_EINVAL: the text can mean nobody. */
int mo_identity_check(struct mo_span text, struct mo_err *e);

#endif
