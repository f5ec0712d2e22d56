/* foreground.h - a program that takes our terminal for a while: a person's
 * editor.
 *
 * It has our standard input, output and error, our session and our process
 * group, so that the terminal treats it as the one in front; what is typed
 * reaches both of us: the owner reads nothing meanwhile, and the signals of
 * Ctrl-C and Ctrl-\ are ignored here until it has ended. It dies with us
 * (spawn.h). It is not of the guardian's children: those have a
 * group of their own, which would put them in the background here.
 *
 * on_exit fires exactly once, from the loop, and the fore is gone then,
 * unless mo_foreground_free() came before it. */
#ifndef MO_LOOP_FOREGROUND_H
#define MO_LOOP_FOREGROUND_H

#include "loop/proc.h"

struct mo_foreground;

struct mo_foreground_opts {
    const char *file; /* as mo_spawn() takes them */
    const char *const *argv, *const *env;
    void (*on_exit)(void *ctx, struct mo_exit x);
    void *ctx;
};

int mo_foreground_start(struct mo_loop *l, const struct mo_foreground_opts *o,
                        struct mo_foreground **out, struct mo_err *e);
/* SIGTERM, and nobody waits for it any more. */
void mo_foreground_free(struct mo_foreground *f);

#endif
