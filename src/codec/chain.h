/* chain.h - hash-chained lines: a changed, removed or moved line is detected.
 *
 *   {"seq":12,"prev":"HEX",MEMBERS,"hash":"HEX"}
 *
 * Each line is a JSON object. `hash` is the SHA-256 of the line's own bytes
 * before ,"hash"; `prev` is the hash of the line before it, `seq` counts from
 * 1. The first line's prev is 64 zeros. So a line depends on every byte before
 * it, and the last hash covers all of them: with a copy of it kept elsewhere,
 * missing lines at the end are detected, too.
 *
 * Checking compares bytes, not JSON values: only one spelling is valid. No
 * allocation besides the caller's buffer. This room knows no files and does
 * not interpret the members. */
#ifndef MO_CODEC_CHAIN_H
#define MO_CODEC_CHAIN_H

#include "base/str.h"

#define MO_CHAIN_HEX 64

struct mo_chain {
    uint64_t seq;                /* of the last line; 0: none yet */
    char hash[MO_CHAIN_HEX + 1]; /* its hash */
    bool open; /* the last line is unknown: any line may follow */
};

void mo_chain_init(struct mo_chain *c);
/* Continue after that line, which must be whole; MO_EPROTO: not a line. */
int mo_chain_resume(struct mo_chain *c, struct mo_span line, struct mo_err *e);

/* Append the next line, with its LF. members: "\"a\":1,\"b\":2", without raw
 * newlines (MO_EINVAL). On failure nothing has changed. */
int mo_chain_put(struct mo_chain *c, struct mo_span members, struct mo_buf *out,
                 struct mo_err *e);

/* The next line, without its LF. MO_EPROTO says what is wrong with it; the
 * chain then stays where it was. */
int mo_chain_check(struct mo_chain *c, struct mo_span line, struct mo_err *e);

#endif
