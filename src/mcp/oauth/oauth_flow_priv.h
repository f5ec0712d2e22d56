/* oauth_flow_priv.h - the inside of a flow, for the files that have its steps:
 * oauth_flow.c, oauth_flow_device.c and oauth_flow_machine.c. */
#ifndef MO_MCP_OAUTH_OAUTH_FLOW_PRIV_H
#define MO_MCP_OAUTH_OAUTH_FLOW_PRIV_H

#include "base/mem.h"
#include "mcp/oauth/oauth_ask.h"
#include "mcp/oauth/oauth_device.h"
#include "mcp/oauth/oauth_flow.h"

#define MO_FLOW_FORM_MAX ((size_t)64 * 1024)

enum flow_state {
    RESOURCE,
    ISSUER,
    REGISTER,
    SIGN_IN,
    TOKEN,
    REFRESH,
    DEVICE,   /* the device endpoint is asked */
    PAUSE,    /* until the next poll */
    POLL,     /* the token endpoint is asked whether the person has agreed */
    EXCHANGE, /* the identity provider is asked for a grant */
    ENDED,
};

struct mo_flow {
    struct mo_flow_opts o;
    enum flow_state state;
    struct mo_arena a; /* all texts of the flow */
    struct mo_oauth_challenge challenge;
    struct mo_oauth_urls urls;
    size_t at;   /* index of the address being requested */
    bool legacy; /* no metadata of the resource */
    bool known;  /* the client is from an earlier registration */
    struct mo_oauth_resource resource;
    struct mo_oauth_server issuer;
    struct mo_oauth_client client;
    struct mo_oauth_try attempt;
    struct mo_oauth_device device;
    uint64_t device_ends; /* mo_now_ns() */
    bool was_local;       /* q.local before EXCHANGE */
    struct mo_token token;
    struct mo_dpop dpop; /* the key of the token, if it is to be bound */
    struct mo_buf form;  /* sent to the token endpoint */
    bool nonced;         /* sent again with the issuer's nonce */
    struct mo_oauth_ask q;
    struct mo_timer timer;
    struct mo_later end;
    struct mo_err why; /* code 0: success */
};

void mo_flow_set_state(struct mo_flow *f, enum flow_state to);
/* End the flow; why NULL: with a token. */
void mo_flow_finish(struct mo_flow *f, const struct mo_err *why);
/* Post a form to the token endpoint, without the proof of the client's key. */
int mo_flow_post(struct mo_flow *f, const struct mo_buf *form,
                 struct mo_err *e);
/* Post it again if the issuer wants its nonce in our proof. Returns 1: it is
 * under way; 0: the answer is another one. */
int mo_flow_post_again(struct mo_flow *f, struct mo_err *e);
/* Bind the token to a key, if issuer and server know that. */
int mo_flow_bind(struct mo_flow *f, struct mo_err *e);
/* Steps: handle the answer in f->q. */
int mo_flow_handle_token(struct mo_flow *f, struct mo_err *e);
int mo_flow_handle_device(struct mo_flow *f, struct mo_err *e);
int mo_flow_handle_poll(struct mo_flow *f, struct mo_err *e);
int mo_flow_handle_exchange(struct mo_flow *f, struct mo_err *e);

/* A token without a person (oauth_machine.h). */
int mo_flow_start_machine(struct mo_flow *f, struct mo_err *e);

int mo_flow_start_device(struct mo_flow *f, struct mo_err *e);
/* Wait for the next poll; longer each time if the provider is not there. */
void mo_flow_pause(struct mo_flow *f, bool slower);
void mo_flow_poll(struct mo_flow *f);

#endif
