/* watch.h - an engine's own news, so that a container that ends is noticed
 * at once and an engine that goes away too.
 *
 * The watch holds one connection (GET /events) open. When it breaks, on_lost
 * tells; it is then opened again and again, with growing pauses, and on_back
 * tells that it stands. What happened in between is not replayed: who cares
 * asks about its containers then. */
#ifndef MO_ENGINE_WATCH_H
#define MO_ENGINE_WATCH_H

#include "engine/engine.h"

#define MO_WATCH_LINE_MAX ((size_t)256 * 1024)

struct mo_watch;

struct mo_watch_cb {
    /* action: "die", "oom", "destroy", ... of the container with that id */
    void (*on_event)(void *ctx, struct mo_span id, struct mo_span action);
    void (*on_back)(void *ctx);
    void (*on_lost)(void *ctx, const struct mo_err *why);
};

/* Only containers with that label ("key=value"). The engine must have been
 * greeted (mo_engine_hello()). */
int mo_watch_start(struct mo_engine *en, const char *label,
                   const struct mo_watch_cb *cb, void *ctx,
                   struct mo_watch **out, struct mo_err *e);
/* No callback any more; frees it in its own time. */
void mo_watch_stop(struct mo_watch *w);
bool mo_watch_is_up(const struct mo_watch *w);

#endif
