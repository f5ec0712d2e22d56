/* chain.h - hash-chained lines: a changed, removed or moved line is detected.
 *
 *   {"seq":12,"prev":"HEX",MEMBERS,"mac":"HEX"}     keyed
 *   {"seq":12,"prev":"HEX",MEMBERS,"hash":"HEX"}    unkeyed, of older versions
 *
 * Each line is a JSON object. `mac` is the HMAC-SHA256 of the line's own bytes
 * before ,"mac"; `hash` is the SHA-256 of those before ,"hash". `prev` is the
 * mac or hash of the line before it, `seq` counts from 1. The first line's prev
 * is 64 zeros. So a line depends on every byte before it, and the last mac
 * covers all of them: with a copy of it kept elsewhere, missing lines at the
 * end are detected, too. Without the key nobody can write a line that is
 * accepted. No unkeyed line may follow a keyed one.
 *
 * Checking compares bytes, not JSON values: only one spelling is valid. No
 * allocation besides the caller's buffer. This room knows no files and does
 * not interpret the members. */
#ifndef MO_CODEC_CHAIN_H
#define MO_CODEC_CHAIN_H

#include "codec/sha256.h"

#define MO_CHAIN_HEX MO_SHA256_HEX

struct mo_chain {
    uint64_t seq;                /* of the last line; 0: none yet */
    char hash[MO_CHAIN_HEX + 1]; /* its hash */
    bool open;  /* the last line is unknown: any line may follow */
    bool keyed; /* the last line was keyed */
    /* Keyed lines are written and checked with it; borrowed. NULL: unkeyed
     * lines are written, keyed lines refused. */
    const struct mo_hmac *key;
};

void mo_chain_init(struct mo_chain *c, const struct mo_hmac *key);
/* HMAC-SHA256 of a text, in hexadecimal digits. */
void mo_chain_mac(const struct mo_hmac *key, struct mo_span text,
                  char out[MO_CHAIN_HEX + 1]);
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
