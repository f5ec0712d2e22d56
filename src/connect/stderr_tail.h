/* stderr_tail.h - the last that each server wrote on its standard error.
 *
 * By the server's name, so that it is still there when the process that said
 * it is not. Whoever runs servers puts in what comes as it comes; whoever
 * shows it gets it without the secrets that the loop's log knows.
 *
 * Limits: MO_TAIL_MAX bytes a server, MO_STDERR_TAIL_MAX servers; the words of
 * further ones are not kept. Out of memory: likewise. */
#ifndef MO_CONNECT_STDERR_TAIL_H
#define MO_CONNECT_STDERR_TAIL_H

#include "base/str.h"

#define MO_TAIL_MAX        ((size_t)4096)
#define MO_STDERR_TAIL_MAX 512

struct mo_loop;
struct mo_stderr_tail;

struct mo_stderr_tail *
mo_stderr_tail_new(struct mo_loop *l);              /* NULL: out of memory */
void mo_stderr_tail_free(struct mo_stderr_tail *t); /* NULL is fine */

/* first: of a process that has said nothing yet; what another said before it
 * is forgotten. */
void mo_stderr_tail_add(struct mo_stderr_tail *t, const char *server,
                        struct mo_span said, bool first);
/* Nothing of it is to be shown any more. */
void mo_stderr_tail_drop(struct mo_stderr_tail *t, const char *server);
/* Appended to out, from a line's beginning where it was cut; t may be NULL. */
int mo_stderr_tail_get(const struct mo_stderr_tail *t, const char *server,
                       struct mo_buf *out);

#endif
