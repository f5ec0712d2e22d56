/* ep_kit.h - an endpoint with a few tools to call.
 *
 * Tools by name: now (answers), number (structured content that is no
 * object), kinds (content that old peers do not know), talk (progress and a
 * log line, then answers), park (kept until the test answers it), ask (needs
 * a name by elicitation), page (sends the user to a page), twice (two rounds,
 * with state), big (KIT_BIG bytes of text).
 *
 * A test that needs more capabilities or other options calls kit_setup() once
 * in main(). */
#ifndef MO_EP_KIT_H
#define MO_EP_KIT_H

#include "codec/rpc.h"
#include "mcp/server/endpoint.h"
#include "mo_net.h"

#define P "io.modelcontextprotocol/"

#define META_CAPS(caps)                                                        \
    "\"_meta\":{\"" P "protocolVersion\":\"2026-07-28\",\"" P                  \
    "clientCapabilities\":" caps "}"

#define META    META_CAPS("{}")
#define TEXT(s) "{\"content\":[{\"type\":\"text\",\"text\":\"" s "\"}]}"

struct kit {
    struct mo_loop *l;
    struct mo_endpoint *ep;
    struct mo_ep_call *parked;
    unsigned calls, cancels;
    struct mo_buf *news; /* of a test's own handler */
};

#define KIT_BIG ((size_t)12 * 1024 * 1024) /* more than sockets buffer */

/* For every kit_open() that follows: more capabilities (MO_EP_*) than the
 * usual ones, and a last change of the options (NULL: none). */
void kit_setup(unsigned more, void (*tune)(struct mo_endpoint_opts *o));

int kit_open(struct kit *k, struct mo_loop *l,
             const struct mo_endpoint_limits *limits);

#endif
