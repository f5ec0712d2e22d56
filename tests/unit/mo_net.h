/* mo_net.h - for tests on real sockets.
 *
 * Offers a loop, streams that record the bytes they receive (struct end),
 * connected pairs of streams, helper programs that must succeed, TLS
 * certificates in a temporary directory, and the number of open descriptors.
 *
 * Every function asserts: a failure inside the kit fails the test. */
#ifndef MO_TEST_NET_H
#define MO_TEST_NET_H

#include <sys/types.h>

#include "loop/net.h"
#include "mo_test.h"

#define WAIT_MS  10000 /* a test that takes this long has failed */
#define GOT_MAX  ((size_t)64 * 1024 * 1024)
#define PATH_LEN 128

struct mo_loop *loop_new(void);
unsigned fds_open(void);

/* A macro, so that a failure names the line of the caller. */
#define wait_for(l, pred, ctx)                                                 \
    assert_true(mo_loop_until((l), (pred), (ctx), WAIT_MS))

/* --- one side of a stream ------------------------------------------------ */

struct end {
    struct mo_stream *s;
    struct mo_buf got;
    bool eof;
    int closes, drains, reads;
    struct mo_err why;           /* of the close; code 0: none */
    void (*saw)(struct end *me); /* after each read */
    void *data;
};

void end_init(struct end *me);
void end_attach(struct end *me, struct mo_stream *s);
bool end_closed(void *ctx);
bool end_at_eof(void *ctx);
void stream_pair(struct mo_loop *l, struct mo_stream *out[2]);

/* --- other programs, scratch files --------------------------------------- */

pid_t run_argv(char *const argv[], int in, int out);

/* Cut a line at its blanks. */
void split_words(char *line, char **argv, size_t max);

struct certs {
    char dir[PATH_LEN], cert[PATH_LEN], key[PATH_LEN];
    char other_cert[PATH_LEN], other_key[PATH_LEN]; /* RSA, another name */
    char locked_key[PATH_LEN], junk[PATH_LEN], none[PATH_LEN];
};

/* Runs a command, its words in one string; waits and insists on success. */
void run_words(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void certs_make(struct certs *c);
void certs_drop(struct certs *c);

#endif
