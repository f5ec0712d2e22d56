/* tls.h - TLS 1.2 and 1.3 over any stream.
 *
 * A context holds certificates and rules and serves any number of streams. It
 * is reference-counted, so it may be freed (or replaced after a certificate was
 * renewed) while its streams are open.
 *
 * mo_tls_wrap() takes a paused stream and returns a new one which owns it and
 * keeps the contract of stream.h:
 *  1. The handshake starts at once, whether or not an owner is attached;
 *     bytes written before it ends wait as plaintext.
 *  2. mo_stream_queued() = plaintext waiting + ciphertext queued below.
 *  3. A paused stream stops the stream below: at most one read
 *     (MO_LOOP_READ_BUF) is held here.
 *  4. EOF is the peer's close_notify and nothing else. A connection that ends
 *     without it is closed with MO_ETLS "truncated": an attacker may have cut
 *     it. Only a stream that is finishing ignores this.
 *  5. A handshake that fails, or takes too long, closes the stream; the reason
 *     names the rejected certificate and why. It is kept until an owner is
 *     attached.
 *  6. No renegotiation, no compression, nothing below TLS 1.2. */
#ifndef MO_LOOP_TLS_H
#define MO_LOOP_TLS_H

#include "loop/stream.h"

struct mo_tls_ctx;

#define MO_TLS_HANDSHAKE_MS 10000

/* PEM files: the certificate first, then its chain; the key without a
 * passphrase. Errors name the file and the problem. */
struct mo_tls_ctx *mo_tls_server_new(const char *cert, const char *key,
                                     struct mo_err *e);

struct mo_tls_client_opts {
    const char *ca;         /* PEM file; NULL: the system's CAs */
    const char *cert, *key; /* client certificate; both or neither */
};
struct mo_tls_ctx *mo_tls_client_new(const struct mo_tls_client_opts *o,
                                     struct mo_err *e);

/* ALPN. Without this call http/1.1 is offered and accepted. A client also
 * offers h2; a server then accepts h2 only. */
int mo_tls_use_h2(struct mo_tls_ctx *c, struct mo_err *e);

/* --- keys instead of certificates (tls_psk.c) -----------------------------
 *
 * Both ends have the same key and prove it to each other in the handshake: TLS
 * 1.3 with an external PSK and (EC)DHE, so a key that is stolen later opens no
 * recording. There are no certificates, tickets or early data; an end without
 * the key gets no byte of the other's.
 *
 * A client names the peer that it wants (`sni` of mo_tls_wrap()), and a server
 * refuses connections for other names. So a connection that was led to another
 * holder of the key, or back to its own process, ends in the handshake. */

#define MO_TLS_PSK_KEY_MIN  32
#define MO_TLS_PSK_NAME_MAX 32 /* with the NUL */

struct mo_tls_psk_opts {
    bool server;
    struct mo_span key;    /* at least MO_TLS_PSK_KEY_MIN bytes; copied */
    const char *protocols; /* of ALPN, with blanks between */
    const char *name;      /* of a server: its own; may be set later */
};
struct mo_tls_ctx *mo_tls_psk_new(const struct mo_tls_psk_opts *o,
                                  struct mo_err *e);
void mo_tls_psk_name(struct mo_tls_ctx *c, const char *name);

/* Why a server with a key refused a client. */
enum mo_tls_refusal {
    MO_TLS_REFUSED_OTHER, /* no TLS, no key, too late, gone */
    MO_TLS_REFUSED_KEY,   /* another key */
    MO_TLS_REFUSED_NAME,  /* it wanted another server */
};

void mo_tls_free(struct mo_tls_ctx *c); /* NULL is fine */
void mo_tls_handshake_ms(struct mo_tls_ctx *c, unsigned ms);

/* On failure `under` is closed. sni (clients): the name the server's
 * certificate must carry, or an IP address; NULL checks the chain only. */
int mo_tls_wrap(struct mo_tls_ctx *c, struct mo_stream *under, bool server,
                const char *sni, struct mo_stream **out, struct mo_err *e);

/* The rest is for a stream that mo_tls_wrap() returned. */

/* Bytes that were read from `under` before it was wrapped. Call it at once. */
int mo_tls_feed(struct mo_stream *s, struct mo_span first, struct mo_err *e);
/* Calls fn once, from the loop, when the handshake is complete and before any
 * byte is delivered. */
void mo_tls_on_ready(struct mo_stream *s, void (*fn)(void *ctx), void *ctx);
/* Whether the peers agreed on h2; only after the handshake. */
bool mo_tls_is_h2(const struct mo_stream *s);
/* The protocol that they agreed on, or empty; only after the handshake. */
struct mo_span mo_tls_protocol(const struct mo_stream *s);
/* Whether the handshake is complete: before, nothing of ours was sent. Also
 * valid inside on_close(). */
bool mo_tls_is_ready(const struct mo_stream *s);
/* With a key, after a failed handshake; also inside on_close(). */
enum mo_tls_refusal mo_tls_refused(const struct mo_stream *s);

#endif
