/* watch.h - an engine's events, so that the end of a container or of the
 * engine is noticed at once.
 *
 * The watch holds one connection (GET /events) open. When it breaks, on_lost
 * fires; it reconnects with growing pauses, and on_back fires when it is up
 * again. Events in between are lost: the owner asks about its containers then.
 */
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

/* Only containers with that label ("key=value"). After mo_engine_hello(). */
int mo_watch_start(struct mo_loop *l, struct mo_engine *en, const char *label,
                   const struct mo_watch_cb *cb, void *ctx,
                   struct mo_watch **out, struct mo_err *e);
/* No callback fires any more; freed later. */
void mo_watch_stop(struct mo_watch *w);
bool mo_watch_is_up(const struct mo_watch *w);

#endif
