/* keeper.h - one process stands above each command.
 *
 * The keeper is a fork of the toolbox that starts the command, reaps what
 * comes back to it and tells the end. It is a subreaper: a daemon that forks
 * itself free is given to the keeper and to nobody else, so the tree below
 * the keeper is exactly what the command has started, however it did. It ends
 * when that tree is empty.
 *
 * It talks by fixed records over a pipe (one write each, so they are whole).
 * When the other end of `order` closes, the toolbox is gone: the keeper then
 * kills its tree and ends. */
#ifndef TB_KEEPER_H
#define TB_KEEPER_H

#include <stdint.h>
#include <sys/types.h>

enum tb_report_kind {
    TB_STARTED, /* value: pid of the command, also its process group */
    TB_NO_EXEC, /* value: errno; TB_ENDED follows, or the keeper ends */
    TB_ENDED,   /* value: wait status of the command */
    TB_LEFT,    /* the command has ended, others below it go on */
};

struct tb_report {
    int32_t kind, value;
};

struct tb_start {
    char **argv, **env;
    int in, out, err; /* of the command */
    int cwd;          /* a directory */
    int order;        /* read end */
    int report;       /* write end */
};

/* In the toolbox: pid of the keeper, or -1 and errno. Every descriptor stays
 * the caller's. */
pid_t tb_keeper_start(const struct tb_start *s);

#endif
