/* priv.h - shared by the files of engine/; nobody else includes it. */
#ifndef MO_ENGINE_PRIV_H
#define MO_ENGINE_PRIV_H

#include "engine/engine.h"
#include "loop/httpu.h"

#define MO_ENGINE_PATH_MAX 1024

struct mo_engine {
    struct mo_loop *loop;
    struct mo_httpu *http;
    struct mo_tls_ctx *tls;
    unsigned answer_ms;
    unsigned api; /* 0: not agreed yet, paths have no version */
    struct mo_engine_facts facts;
    char host[MO_ENGINE_HOST_MAX];
    void (*gone)(void *ctx);
    void *gone_ctx;
};

struct mo_engine_call {
    struct mo_httpu_x *x;
    mo_engine_done *done;
    mo_engine_attached *attached; /* an attach: this instead of done */
    void (*on_head)(void *ctx);
    void (*on_data)(void *ctx, struct mo_span data);
    void *ctx;
    struct mo_buf body;
    int status;
    bool told; /* attached() has been called */
};

#endif
