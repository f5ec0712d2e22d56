/* channel.h - the calls of a script: lines over a socket, both ways.
 *
 * A script asks for tools with one JSON object a line. Each is checked here and
 * sent to the peer as a notification; the peer answers it with a method of the
 * toolbox, and the answer goes to the script. The toolbox runs none of the
 * tools. docs/toolbox.md describes the messages.
 *
 * The script is not trusted. The first line that is not valid ends the channel:
 * the script sees the end of the stream and runs on, the peer is told `closed`.
 *
 * Ownership: a channel belongs to one job and uses its call until
 * tb_channel_close(). Limits: TB_ASK_MAX bytes a line from the script,
 * TB_OPEN_MAX open asks (more are not read), WAITING_MAX bytes of answers that
 * the script does not read (ends the channel). */
#ifndef TB_CHANNEL_H
#define TB_CHANNEL_H

#include "codec/frame.h"
#include "toolbox/loop.h"
#include "toolbox/tool.h"

#define TB_ASK_MAX  ((size_t)1024 * 1024)
#define TB_OPEN_MAX 64
#define TB_NOTE     "notifications/mcp-orchestrator/script"

/* One line of a script. The values borrow the line. */
struct tb_ask {
    uint64_t id;
    struct mo_json tool, arguments, line;
    struct mo_json find, limit;
};

/* MO_EPROTO: the line is no such object. */
int tb_ask_read(struct mo_span line, struct tb_ask *a, struct mo_err *e);

struct tb_channel {
    struct tb_loop *loop;
    struct tb_call *call; /* NULL: closed */
    int fd;               /* -1: ended */
    struct tb_watch watch;
    struct tb_idle more; /* lines that wait for room */
    struct mo_frame frame;
    struct mo_span unread;
    struct mo_buf answers; /* for the script */
    size_t sent;           /* of answers */
    uint64_t open[TB_OPEN_MAX];
    unsigned nopen;
    uint64_t asked;       /* lines forwarded */
    uint64_t since, held; /* ns: asks are open since; were open before */
    bool paused;          /* the peer does not read */
    struct mo_err why;    /* code is set: the channel ended by a mistake */
    char bytes[16384];    /* after unread */
};

/* Takes fd, a socket, also when it fails (NULL: no memory). */
struct tb_channel *tb_channel_open(struct tb_loop *l, struct tb_call *c,
                                   int fd);
/* No notification after this; allowed twice. */
void tb_channel_close(struct tb_channel *ch);
void tb_channel_free(struct tb_channel *ch);
void tb_channel_pause(struct tb_channel *ch, bool paused);

/* Nanoseconds in which the script had open asks: it waits for others then, for
 * a person perhaps. */
uint64_t tb_channel_held(const struct tb_channel *ch);

/* Send the script the answer of an open ask: what is "result" or "error".
 * False: there is no such ask, or the channel has ended. Sends the peer
 * nothing, so it may run while another message is written. */
bool tb_channel_answer(struct tb_channel *ch, uint64_t id, const char *what,
                       struct mo_json value);

#endif
