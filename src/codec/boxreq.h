/* boxreq.h - messages between the orchestrator and the keeper of a native box.
 *
 * The keeper (mo-box) stays with its box, also while the orchestrator restarts.
 * The two talk over a unix socket in frames:
 *
 *   u32 length without the head | u8 type | u8 version | u16 fds
 *
 * and then the fields of the type in the order of its table in boxreq.c:
 * numbers as u64, text as u16 length, bytes and a NUL, lists as u16 count and
 * texts. Little-endian: both ends are on one machine. `fds` is the number of
 * descriptors that come with the frame's first byte.
 *
 * Ownership: decoded text is borrowed from the frame's bytes.
 * Limits: every field has its bounds in the table. A frame that breaks one,
 * lacks a byte or has one too many fails as a whole (MO_EPROTO); a frame over
 * MO_BOXMSG_MAX fails before it is read. Both sides then close the socket.
 *
 * The meaning of the fields belongs to launcher/ and src/box/native.c.
 */
#ifndef MO_CODEC_BOXREQ_H
#define MO_CODEC_BOXREQ_H

#include "codec/mount.h"

#define MO_BOXMSG_VERSION  1
#define MO_BOXMSG_HEAD     8
#define MO_BOXMSG_MAX      ((size_t)64 * 1024)
#define MO_BOXMSG_FDS_MAX  (3 + MO_BOXREQ_PORTS + 2) /* those of DESC */
#define MO_BOXREQ_WORDS    72 /* 64 of the caller's and some of ours */
#define MO_BOXREQ_VIEWS    16
#define MO_BOXREQ_PORTS    32 /* of a box's network */
#define MO_BOXREQ_ID_MAX   48 /* [a-z0-9-] */
#define MO_BOXREQ_TEXT_MAX 128
#define MO_BOXREQ_PATH_MAX 1024
#define MO_BOXREQ_WORD_MAX 8192

/* User ids of the boxes that root makes; one of each running box. */
#define MO_BOX_UID_FIRST 20000
#define MO_BOX_UIDS      4096

enum mo_boxmsg_type {
    /* to the keeper */
    MO_BOXMSG_START = 1, /* req; fds: the program, if req.by_fd */
    /* req without ports, ca, mounts and files, in the kept workspace: ids,
     * limits ignored */
    MO_BOXMSG_RESTART,
    MO_BOXMSG_ATTACH,   /* -> DESC with the three fds if it runs */
    MO_BOXMSG_DESCRIBE, /* -> DESC without */
    MO_BOXMSG_KILL,     /* end the box and remove everything -> ENDED */
    MO_BOXMSG_FREEZE,   /* -> DESC */
    MO_BOXMSG_THAW,     /* -> DESC */
    MO_BOXMSG_LABEL,    /* label -> DESC */
    MO_BOXMSG_CLOSE_IN, /* the program reads end of file -> DESC */
    MO_BOXMSG_STATS,    /* -> STATS_ARE */
    MO_BOXMSG_WHO,      /* who -> PROGRAM */
    /* from the keeper */
    /* desc; fds: stdin (write), stdout, stderr (read); if the box has a network
     * also its sockets (launcher/net.h) */
    MO_BOXMSG_DESC = 64,
    MO_BOXMSG_REFUSED,   /* refused: the request failed */
    MO_BOXMSG_ENDED,     /* end: the program is gone */
    MO_BOXMSG_STATS_ARE, /* stats */
    MO_BOXMSG_TAKEN,     /* another client attached; this one gets no more */
    MO_BOXMSG_PROGRAM,   /* program */
};

struct mo_boxreq {
    const char *id;       /* names the socket and the cgroups */
    const char *dir;      /* where the socket is; 0700 and ours */
    const char *session;  /* labels, only returned by DESCRIBE */
    const char *instance; /* which run of the program */
    const char *store;    /* whose sessions */
    const char *policy;   /* digest of what was asked */
    uint64_t expires; /* wall s: ends then if no client is attached; 0: never */
    uint64_t linger_ms; /* ends so long after the last client left; 0: the
                           client's end of input ends the box's, too */
    uint64_t memory;    /* bytes, swap included */
    uint64_t cpu_milli; /* 1000 = one core */
    uint64_t pids;
    uint64_t workspace, workspace_inodes;
    uint64_t tmp, tmp_inodes;
    uint64_t file_size;  /* bytes of one file */
    uint64_t open_files; /* of one process */
    const char *root;    /* "": a view of the host; else an unpacked image */
    uint64_t by_fd;      /* 1: the program comes as a descriptor */
    const char *views[MO_BOXREQ_VIEWS + 1]; /* more of the host, read-only */
    const char *argv[MO_BOXREQ_WORDS + 1];  /* argv[0]: path, unless by_fd */
    const char *env[MO_BOXREQ_WORDS + 1];   /* all of it */
    const char *ports; /* "80,443": those of its network; "": it has none */
    /* "DEV INO HOST:BOX:ro": of the host (codec/mount.h), if it still is that
     * inode; no part of HOST is a link */
    const char *mounts[MO_MOUNTS_MAX + 1];
    const char *ca; /* file: the certificates that programs trust; "": those of
                       the root */
    /* id under which the workspace is kept in dir (launcher/kept.h); "": it is
     * not */
    const char *files;
};

enum mo_boxdesc_state { MO_BOX_IS_RUNNING, MO_BOX_IS_FROZEN, MO_BOX_HAS_ENDED };

struct mo_boxdesc {
    const char *id, *session, *instance, *store, *policy;
    uint64_t expires, started; /* wall s */
    uint64_t state;            /* enum mo_boxdesc_state */
    uint64_t pid;              /* of the box's first process, on the host */
    uint64_t uid;              /* on the host */
    uint64_t starts;           /* 1, and one more for each restart */
    uint64_t landlock;         /* ABI, 0: this kernel has none */
    uint64_t attached;         /* 1: a client is attached */
};

struct mo_boxrefused {
    uint64_t code; /* -MO_E* */
    uint64_t sys;  /* errno or 0 */
    const char *msg;
};

enum mo_boxend_cause {
    MO_BOXEND_STOPPED, /* it was asked for, or time was up */
    MO_BOXEND_EXITED,
    MO_BOXEND_OOM,
    MO_BOXEND_KILLED,
};

struct mo_boxend {
    uint64_t cause;  /* enum mo_boxend_cause */
    uint64_t code;   /* exit status, if EXITED */
    uint64_t signal; /* or 0 */
    uint64_t kept;   /* 1: RESTART finds the workspace as it was */
};

struct mo_boxlabel {
    const char *session, *instance;
    uint64_t expires, linger_ms;
};

struct mo_boxstats {
    uint64_t memory, memory_peak, cpu_us, pids;
    uint64_t oom_kills;
};

/* A connection of the box, by its ends. Keepers of earlier versions do not know
 * the question and hang up, so it has a connection of its own. */
struct mo_boxwho {
    const char *from, *to; /* addresses */
    uint64_t from_port, to_port;
};

struct mo_boxprogram {
    const char *path; /* untrusted; "": not known (launcher/program.h) */
};

struct mo_boxmsg {
    enum mo_boxmsg_type type;
    unsigned fds;
    union {
        struct mo_boxreq req;
        struct mo_boxdesc desc;
        struct mo_boxrefused refused;
        struct mo_boxend end;
        struct mo_boxlabel label;
        struct mo_boxstats stats;
        struct mo_boxwho who;
        struct mo_boxprogram program;
    } u;
};

/* Append one frame. MO_EINVAL when a field is out of its bounds. */
int mo_boxmsg_put(struct mo_buf *b, const struct mo_boxmsg *m,
                  struct mo_err *e);

/* Length of the whole frame whose head is at in.p; 0 when the head is not
 * complete; MO_EPROTO for an invalid head. */
int mo_boxmsg_len(struct mo_span in, size_t *len, struct mo_err *e);

/* 1: one frame was taken off *in. 0: it is not complete yet. Or MO_EPROTO. */
int mo_boxmsg_next(struct mo_span *in, struct mo_boxmsg *out, struct mo_err *e);

bool mo_boxreq_id_ok(const char *id);

#endif
