/* peer.h - conversations that are open in another process.
 *
 * Several processes may serve one store. One of them has the lease of a
 * session: it runs the turns of the conversation. A seat is one member of a
 * conversation, wherever that is: the functions below have the meaning of those
 * of agent/chat/chat.h, with the same events and answers.
 *
 *   seat -> chat of this process                     (nothing in between)
 *   seat -> unix socket -> guest -> chat of the holder
 *   seat -> TLS (cluster.h) -> guest -> chat of the holder, on another machine
 *
 * A seat first joins here. If a living process has the lease, the seat asks the
 * store who that is and where it listens (address.h), and joins there. It moves
 * by itself when that process ends, is stopped or loses the lease: it joins
 * again, here or there, and its user gets "system:ready" and "session:history"
 * again. A holder that cannot be reached is waited for MO_SEAT_SEARCH_MS; then
 * the seat is closed with an error that names it.
 *
 * Commands
 *   1. Commands that come before "system:ready" wait in the seat.
 *   2. Every command is answered once. If the holder goes before it has
 *      answered, messages, decisions and the wish to stop are sent to the next
 *      one. A message keeps its id, so it is stored once; a decision names a
 *      card, which is decided once. If the answer of such a repetition is a
 *      refusal, or the command is of another kind, the answer is
 *      {ok:false, code:"unknown"}: it may have had an effect.
 *   3. MO_SEAT_COMMANDS of MO_SEAT_BYTES together may be unanswered; more are
 *      refused ("busy").
 *
 * Trust: a peer on this machine is a process of the same user or of root, at a
 * socket of mode 0600 in a directory of mode 0700; one on another machine has
 * the key of the cluster (cluster.h), which is as good. Such a process can read
 * and write the store and the memory of this one, so it gains nothing by lying
 * about whom it speaks for. Hence a guest is believed what the gate of its own
 * process has judged: owner, door, name, role, groups and personal token.
 * Groups are sent again with every ping. Everything else is checked as for a
 * member here: the session's owner, its shares, rules, digests, limits.
 * Sign-outs and revoked tokens are noticed by the process of the seat, which
 * then leaves it.
 *
 * Limits: MO_PEER_GUESTS connections; MO_PEER_QUEUE_MAX bytes wait for one
 * that does not read, then it is closed and its seat joins again. */
#ifndef MO_PEER_PEER_H
#define MO_PEER_PEER_H

#include "agent/chat/chat.h"

#define MO_PEER_GUESTS    4096
#define MO_PEER_QUEUE_MAX (MO_CHAT_EVENT_MAX + (size_t)4 * 1024 * 1024)
#define MO_PEER_SILENCE_MS                                                     \
    MO_LEASE_TTL_MS /* then the holder counts as lost                          \
                     */
#define MO_SEAT_COMMANDS  64
#define MO_SEAT_BYTES     ((size_t)8 * 1024 * 1024)
#define MO_SEAT_SEARCH_MS 30000

struct mo_peers;
struct mo_seat;

struct mo_peers_opts {
    struct mo_agent *agent; /* NULL: no conversations; others find us for HTTP
                             * requests only (others.h), nobody may join */
    struct mo_store *store;
    const char *instance; /* session/instance.h */
    const char *dir;      /* of its files; NULL: others cannot reach us */
};

int mo_peers_open(struct mo_loop *l, const struct mo_peers_opts *o,
                  struct mo_peers **out, struct mo_err *e);
/* Other machines, too: ours may be reached, and theirs. Borrowed until it is
 * gone. */
struct mo_cluster;
void mo_peers_cluster(struct mo_peers *p, struct mo_cluster *c);
struct mo_agent *mo_peers_agent(const struct mo_peers *p);
/* Who know groups of people, for rules that name some; borrowed. */
void mo_peers_people(struct mo_peers *p, struct mo_people *const *people);
/* No more guests, and no more seats at other processes. Call it before
 * mo_agent_close(), which tells the guests that are there to go elsewhere. */
void mo_peers_stop(struct mo_peers *p);
/* After mo_agent_close(), when every seat was left. gone(ctx) once, later. */
void mo_peers_close(struct mo_peers *p, void (*gone)(void *ctx), void *ctx);

/* --- seats ---------------------------------------------------------------- */

int mo_seat_join(struct mo_peers *p, const struct mo_join *j,
                 const struct mo_member_cb *cb, void *ctx, struct mo_seat **out,
                 struct mo_err *e);
/* j->reads: a reader (mo_chat_follow()), who follows the session wherever it is
 * open. */
bool mo_seat_reads(const struct mo_seat *s);
/* False: its decisions are refused. True at another process: that one judges
 * them, as it knows the shares. */
bool mo_seat_may_decide(const struct mo_seat *s);
/* No callback follows, except the answers of commands. */
void mo_seat_leave(struct mo_seat *s);

/* done() is called once; a refusal may come before the function returns. */
void mo_seat_say(struct mo_seat *s, struct mo_span text, mo_ack_fn *done,
                 void *ctx);
void mo_seat_decide(struct mo_seat *s, const struct mo_decision *d,
                    mo_ack_fn *done, void *ctx);
void mo_seat_answer(struct mo_seat *s, const struct mo_answer *a,
                    mo_ack_fn *done, void *ctx);
void mo_seat_accept(struct mo_seat *s, struct mo_span tool,
                    struct mo_span digest, mo_ack_fn *done, void *ctx);
void mo_seat_cancel(struct mo_seat *s, mo_ack_fn *done, void *ctx);
void mo_seat_reset(struct mo_seat *s, mo_ack_fn *done, void *ctx);
void mo_seat_end(struct mo_seat *s, mo_ack_fn *done, void *ctx);
/* "old_server": the process that has the conversation does not know wishes. */
void mo_seat_wish(struct mo_seat *s, const struct mo_wish *w, mo_ack_fn *done,
                  void *ctx);

#endif
