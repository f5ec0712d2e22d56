/* foreground.h - run a program, such as an editor, on our terminal.
 *
 * The program shares our standard input, output and error, our session and our
 * process group, so the terminal treats it as the foreground program. Until it
 * ends the owner must not read the terminal, and the signals of Ctrl-C and
 * Ctrl-\ are ignored in this process. The program dies with this process
 * (spawn.h). It is not a child of the guardian: those have a process group of
 * their own, which would put the program in the background.
 *
 * on_exit fires exactly once, from the loop, and frees the object. After
 * mo_foreground_free() it does not fire. */
#ifndef MO_LOOP_FOREGROUND_H
#define MO_LOOP_FOREGROUND_H

#include "loop/proc.h"

struct mo_foreground;

struct mo_foreground_opts {
    const char *file; /* as in mo_spawn() */
    const char *const *argv, *const *env;
    void (*on_exit)(void *ctx, struct mo_exit x);
    void *ctx;
};

int mo_foreground_start(struct mo_loop *l, const struct mo_foreground_opts *o,
                        struct mo_foreground **out, struct mo_err *e);
/* Send SIGTERM and forget the program; on_exit does not fire. */
void mo_foreground_free(struct mo_foreground *f);

#endif
