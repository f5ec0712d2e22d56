/* tally.h - what the MCP clients of the benchmarks have in common: the call
 * that is made again and again, and the counting of it.
 *
 * A call is a tool, its arguments and a text that its answer must hold. Eight
 * hash signs in the arguments become the number of the call, so that no two
 * are the same. WARM calls are made first and not counted; then the server is
 * charged the CPU time that CALLS took, and each call's time is kept. */
#ifndef MO_BENCH_TALLY_H
#define MO_BENCH_TALLY_H

#include <sys/types.h>

#include "base/str.h"
#include "meter.h"

#define TALLY_TEXT_MAX 4096

#define INITIALIZE                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"     \
    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{"  \
    "\"name\":\"load\",\"version\":\"1\"}}}"
#define INITIALIZED                                                            \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"

struct wish {
    const char *tool, *arguments, *want;
};

/* Options --tool, --arguments and --want from the front of arg, which is moved
 * on; what is not said is a call of `echo`. */
void wish_read(struct wish *w, int *argc, char ***argv);
/* The whole request, as text. */
void wish_put(const struct wish *w, char out[TALLY_TEXT_MAX]);
/* Where the number of a call goes in that text; NULL: nowhere. */
char *wish_field(char *text);
void wish_number(char *field, unsigned number); /* NULL is fine */

struct tally {
    pid_t pid;
    unsigned warm, calls;
    unsigned sent, done;
    uint64_t cpu0, cpu, wall0, wall;
    uint32_t *ns; /* of each counted call */
};

void tally_init(struct tally *t, const char *warm, const char *calls);
bool tally_next(struct tally *t); /* is there another call to make? */
void tally_done(struct tally *t, uint64_t since);
bool tally_over(const struct tally *t);
void tally_print(struct tally *t); /* one line of JSON; frees */

int tally_dial(const char *port); /* 127.0.0.1 */

#endif
