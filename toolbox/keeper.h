/* keeper.h - the process above each command.
 *
 * The keeper is a fork of the toolbox that starts the command, reaps its
 * children and reports the end. It is a subreaper: orphans of the command, such
 * as daemons, become its children. So the tree below the keeper is exactly what
 * the command has started. The keeper ends when that tree is empty.
 *
 * It reports with fixed records over a pipe (one write each, so they are
 * whole). When the other end of `order` closes, the toolbox is gone: the keeper
 * kills its tree and ends. */
#ifndef TB_KEEPER_H
#define TB_KEEPER_H

#include <stdint.h>
#include <sys/types.h>

enum tb_report_kind {
    TB_STARTED, /* value: pid of the command, also its process group */
    TB_NO_EXEC, /* value: errno; TB_ENDED follows, or the keeper ends */
    TB_ENDED,   /* value: wait status of the command */
    TB_LEFT,    /* the command has ended, others below it still run */
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
    int channel;      /* stays open in the command; 0: none */
    uint64_t data;    /* bytes of memory it may allocate; 0: no limit */
};

/* Called in the toolbox. Returns the keeper's pid, or -1 and errno. The caller
 * keeps every descriptor. */
pid_t tb_keeper_start(const struct tb_start *s);

#endif
