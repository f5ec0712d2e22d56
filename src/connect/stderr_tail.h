/* stderr_tail.h - the last bytes that each server wrote to its standard error.
 *
 * Stored by server name, so they outlive the process. Whoever runs servers adds
 * the bytes as they arrive. Readers get them without the secrets known to the
 * loop's log.
 *
 * Limits: MO_TAIL_MAX bytes per server, MO_STDERR_TAIL_MAX servers. Output of
 * further servers, or when memory runs out, is dropped. */
#ifndef MO_CONNECT_STDERR_TAIL_H
#define MO_CONNECT_STDERR_TAIL_H

#include "base/str.h"

#define MO_TAIL_MAX        ((size_t)8192)
#define MO_STDERR_TAIL_MAX 512

struct mo_loop;
struct mo_stderr_tail;

struct mo_stderr_tail *
mo_stderr_tail_new(struct mo_loop *l);              /* NULL: out of memory */
void mo_stderr_tail_free(struct mo_stderr_tail *t); /* NULL is fine */

/* first: first output of a new process; output of the previous one is
 * dropped. */
void mo_stderr_tail_add(struct mo_stderr_tail *t, const char *server,
                        struct mo_span bytes, bool first);
/* Appends the tail to out, starting at a line if it was cut; t may be NULL. */
int mo_stderr_tail_get(const struct mo_stderr_tail *t, const char *server,
                       struct mo_buf *out);

#endif
