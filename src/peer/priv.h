/* priv.h - shared by the files of peer/: peers (opening and closing), address
 * (where processes listen), guest (members of other processes at a chat here),
 * seat (a member, here or there), command (what a seat has to say), wire
 * (frames). Nobody else includes it. */
#ifndef MO_PEER_PRIV_H
#define MO_PEER_PRIV_H

#include <sys/un.h>

#include "base/list.h"
#include "loop/net.h"
#include "peer/cluster.h"
#include "peer/peer.h"
#include "peer/wire.h"
#include "session/instance.h"

#define PEER_PATH_MAX sizeof(((struct sockaddr_un *)NULL)->sun_path)
#define PEER_MARK     "peer:"
#define PEER_BOOT_MAX 64

struct mo_peers {
    struct mo_loop *loop;
    struct mo_agent *agent;
    struct mo_people *const *people; /* who know groups; or NULL */
    struct mo_store *store;
    char instance[MO_INSTANCE_MAX];
    char boot[PEER_BOOT_MAX]; /* of this machine's kernel */
    char path[PEER_PATH_MAX]; /* "": others cannot reach us */
    struct mo_listener *listener;
    struct mo_cluster *cluster; /* to other machines; NULL: none */
    struct mo_list guests, seats;
    unsigned nguests, nseats;
    unsigned pending; /* store operations under way */
    struct mo_timer again, sweep;
    char foreign[MO_INSTANCE_MAX]; /* logged last: no version in common */
    bool stopped, closing;
    struct mo_later later; /* the end */
    struct mo_gone gone;
};

/* --- peers.c -------------------------------------------------------------- */

void mo_peers_settle(struct mo_peers *p); /* frees it if it is over */
/* Joins, or follows, the chat of this process. */
int mo_peer_join_here(struct mo_peers *p, struct mo_join *j,
                      const struct mo_member_cb *cb, void *ctx,
                      struct mo_member **out, struct mo_err *e);

/* --- address.c ------------------------------------------------------------ */

/* Where a process listens, from its document in the store. */
struct peer_address {
    char path[PEER_PATH_MAX];         /* its unix socket, or "" */
    char far[MO_CLUSTER_ADDRESS_MAX]; /* for other machines, or "" */
    bool is_near; /* on this machine, since it was started: use its path */
    bool is_far;  /* use the other one; neither: it cannot be reached */
    uint64_t at;  /* wall ms: when it was written */
    uint64_t speaks[2]; /* versions of the protocol, from and to */
    unsigned version;   /* the highest that we speak too; 0: none */
};

int mo_peer_address_read(const struct mo_peers *p, struct mo_span doc,
                         struct peer_address *out, struct mo_err *e);
/* Why there is no way to that instance: no version in common. Says so in the
 * log, too, once for each instance in a row. */
const struct mo_err *mo_peer_no_version(struct mo_peers *p,
                                        const char *instance,
                                        const struct peer_address *a,
                                        struct mo_err *e);
void mo_peer_address_init(struct mo_peers *p);
/* Writes ours, again until it is written, and removes those of the dead. */
void mo_peer_address_publish(struct mo_peers *p);
/* There is more to say: other machines can reach us. From then on the documents
 * are looked at every SWEEP_MS. */
void mo_peer_address_again(struct mo_peers *p);
void mo_peer_address_remove(struct mo_peers *p);

/* --- guest.c -------------------------------------------------------------- */

int mo_peer_guests_open(struct mo_peers *p, struct mo_err *e);
/* From another machine, with the key; ctx: struct mo_peers. */
void mo_peer_guest_far(void *ctx, struct mo_stream *s);
void mo_peer_guests_stop(struct mo_peers *p);

/* --- seat.c --------------------------------------------------------------- */

enum seat_state {
    SEAT_HERE,    /* member of a chat here, or its opening */
    SEAT_LOOKING, /* for the process that has the session */
    SEAT_DIALING,
    SEAT_THERE,  /* connected to it */
    SEAT_PAUSED, /* before the next attempt */
    SEAT_OVER,   /* left or closed; freed when nothing is under way */
};

struct mo_seat {
    struct mo_peers *p;
    struct mo_list node;
    enum seat_state state;
    const struct mo_member_cb *cb;
    void *ctx;
    struct mo_buf join;     /* a JOIN frame */
    struct mo_buf farewell; /* "session:closed", until it is known to be true */
    bool reads;             /* a reader */
    bool was_ready;         /* once; then the session has a model */
    bool ready;             /* "system:ready" has come from the present place */
    bool open;              /* commands are sent on at once */

    struct mo_list commands; /* struct command, oldest first */
    unsigned ncommands;
    size_t bytes;
    uint32_t last_no;

    struct mo_member *member; /* HERE */
    struct mo_dial *dial;     /* DIALING */
    struct mo_stream *stream; /* THERE, and until it is closed */
    bool stream_far;          /* to another machine */
    bool stream_ready;        /* anything has come */
    struct mo_peer_frames in;
    uint64_t heard;        /* ns: when anything last came */
    const char *out;       /* why the holder has closed it, or NULL */
    struct mo_err out_why; /* code 0: none */

    char holder[MO_INSTANCE_MAX]; /* which was looked for */
    uint64_t fence;               /* of its lease */
    struct peer_address address;
    unsigned rounds;       /* of looking for a place, since `since` */
    uint64_t since;        /* ns; 0: it is not looking */
    unsigned pending;      /* operations that call back */
    struct mo_timer timer; /* PAUSED: the next attempt; THERE: ping */
    struct mo_later later;
};

/* Closes the connection to the holder; the seat joins again. */
void mo_seat_lose(struct mo_seat *s, const struct mo_err *why);
void mo_seats_stop(struct mo_peers *p); /* those at other processes */

/* --- command.c ------------------------------------------------------------ */

/* Sends the commands that wait, in order, while the seat is open. */
void mo_seat_flush(struct mo_seat *s);
/* The answer of the present holder; false: to no command. */
bool mo_seat_acked(struct mo_seat *s, uint32_t no, const struct mo_ack *a);
/* The connection to the holder is lost: commands that may be repeated wait for
 * the next place, the others are answered. */
void mo_seat_unsend(struct mo_seat *s);
/* Commands that a chat here has are answered without the seat from now on. */
void mo_seat_detach(struct mo_seat *s);
void mo_seat_refuse_all(struct mo_seat *s); /* answers the rest */
void mo_seat_refuse_unsent(struct mo_seat *s);

#endif
