#include "peer/wire.h"

#include <stdio.h>

/* --- joins ---------------------------------------------------------------- */

/* As struct mo_door names them. */
static const char *const doors[] = {"page", "token", "socket", "terminal",
                                    "open"};

static const char *known_text(struct mo_span s, const char *const *known,
                              size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (mo_span_is(s, known[i]))
            return known[i];
    return NULL;
}

/* A field with its NUL. */
static void put_text(struct mo_buf *b, const char *text)
{
    mo_peer_put(b, text ? mo_span(text, strlen(text) + 1) : mo_span("", 1));
}

unsigned mo_wire_common(uint64_t min, uint64_t max)
{
    uint64_t low = min > MO_WIRE_MIN ? min : MO_WIRE_MIN;
    uint64_t high = max < MO_WIRE_MAX ? max : MO_WIRE_MAX;

    return low <= high ? (unsigned)high : 0;
}

void mo_wire_put_join(struct mo_buf *b, const struct mo_join *j,
                      unsigned version)
{
    size_t at = mo_peer_begin(b, MO_PEER_JOIN);
    char number[16];

    (void)snprintf(number, sizeof(number), "%u", version);
    mo_peer_put(b, mo_span_cstr(number));
    mo_peer_put(b, j->session);
    mo_peer_put(b, j->model);
    mo_peer_put(b, j->key);
    mo_peer_put(b, j->who);
    mo_peer_put(b, j->owner);
    put_text(b, j->person.name);
    mo_peer_put_u32(b, (uint32_t)j->person.role);
    put_text(b, j->person.groups);
    mo_peer_put(b, j->grant);
    mo_peer_put_u32(b, j->reads);
    if (j->door)
        mo_peer_put(b, mo_span_cstr(j->door));
    else
        mo_peer_put_absent(b);
    mo_peer_end(b, at);
}

/* A field with its NUL, of at most `max` bytes: a longer one would be cut, and
 * mean somebody else. */
static bool read_text(struct mo_span *data, size_t max, const char **out)
{
    struct mo_span text;

    if (!mo_peer_field(data, &text, NULL) || text.n == 0 || text.n > max ||
        memchr(text.p, '\0', text.n) != text.p + text.n - 1)
        return false;
    *out = text.p;
    return true;
}

/* For whom the gate of the other process has taken them. */
static bool read_person(struct mo_span *data, struct mo_join *out)
{
    uint32_t role, reads;

    if (!read_text(data, MO_PERSON_MAX, &out->person.name) ||
        !mo_peer_u32(data, &role) || role >= MO_ROLES ||
        !read_text(data, MO_WIRE_GROUPS_MAX, &out->person.groups) ||
        !mo_peer_field(data, &out->grant, NULL) ||
        out->grant.n >= MO_CHAT_GRANT_MAX || !mo_peer_u32(data, &reads) ||
        reads > 1)
        return false;
    out->person.role = (enum mo_role)role;
    out->reads = reads;
    return true;
}

int mo_wire_join(struct mo_span data, struct mo_join *out, struct mo_err *e)
{
    struct mo_span version, door;
    bool has_door;
    uint64_t n = 0;

    *out = (struct mo_join){.door = NULL};
    if (!mo_peer_field(&data, &version, NULL))
        return mo_fail(e, MO_EPROTO, "not a join");
    if (mo_span_u64(version, &n) < 0 || mo_wire_common(n, n) == 0)
        return mo_fail(e, MO_EPOLICY,
                       "the other process speaks version %.*s, this one %u "
                       "to %u",
                       version.n < 8 ? (int)version.n : 8, version.p,
                       MO_WIRE_MIN, MO_WIRE_MAX);
    if (!mo_peer_field(&data, &out->session, NULL) ||
        !mo_peer_field(&data, &out->model, NULL) ||
        !mo_peer_field(&data, &out->key, NULL) ||
        !mo_peer_field(&data, &out->who, NULL) ||
        !mo_peer_field(&data, &out->owner, NULL) || !read_person(&data, out) ||
        !mo_peer_field(&data, &door, &has_door) || data.n > 0)
        return mo_fail(e, MO_EPROTO, "not a join");
    out->door = known_text(door, doors, MO_COUNT(doors));
    return 0;
}

void mo_wire_put_ping(struct mo_buf *b, const char *groups)
{
    size_t at = mo_peer_begin(b, MO_PEER_PING);

    put_text(b, groups);
    mo_peer_end(b, at);
}

bool mo_wire_ping(struct mo_span data, const char **groups)
{
    return read_text(&data, MO_WIRE_GROUPS_MAX, groups) && data.n == 0;
}

/* --- commands ------------------------------------------------------------- */

#define AGAIN_AT (MO_PEER_HEAD + 11) /* last byte of `again` */

static size_t begin_command(struct mo_buf *b, uint32_t no,
                            enum mo_wire_kind kind)
{
    size_t at = mo_peer_begin(b, MO_PEER_COMMAND);

    mo_peer_put_u32(b, no);
    mo_peer_put_u32(b, kind);
    mo_peer_put_u32(b, 0);
    return at;
}

void mo_wire_put_say(struct mo_buf *b, uint32_t no, struct mo_span id,
                     struct mo_span text)
{
    size_t at = begin_command(b, no, MO_WIRE_SAY);

    mo_peer_put(b, id);
    mo_peer_put(b, text);
    mo_peer_end(b, at);
}

void mo_wire_put_decide(struct mo_buf *b, uint32_t no,
                        const struct mo_decision *d)
{
    size_t at = begin_command(b, no, MO_WIRE_DECIDE);

    mo_peer_put(b, d->call);
    mo_peer_put_u32(b, d->approved);
    if (d->digest)
        mo_peer_put(b, *d->digest);
    else
        mo_peer_put_absent(b);
    mo_peer_put(b, d->reason);
    mo_peer_put(b, d->args);
    mo_peer_put_u32(b, d->remember);
    mo_peer_put(b, d->conditions);
    mo_peer_end(b, at);
}

void mo_wire_put_answer(struct mo_buf *b, uint32_t no,
                        const struct mo_answer *a)
{
    size_t at = begin_command(b, no, MO_WIRE_ANSWER);

    mo_peer_put(b, a->request);
    mo_peer_put_u32(b, a->action);
    mo_peer_put(b, a->content);
    mo_peer_end(b, at);
}

void mo_wire_put_accept(struct mo_buf *b, uint32_t no, struct mo_span tool,
                        struct mo_span digest)
{
    size_t at = begin_command(b, no, MO_WIRE_ACCEPT);

    mo_peer_put(b, tool);
    mo_peer_put(b, digest);
    mo_peer_end(b, at);
}

void mo_wire_put_wish(struct mo_buf *b, uint32_t no, const struct mo_wish *w)
{
    size_t at = begin_command(b, no, MO_WIRE_WISH);

    mo_peer_put_u32(b, w->kind);
    mo_peer_put_u32(b, (uint32_t)(w->seq >> 32));
    mo_peer_put_u32(b, (uint32_t)w->seq);
    mo_peer_put(b, w->text);
    mo_peer_end(b, at);
}

void mo_wire_put_plain(struct mo_buf *b, uint32_t no, enum mo_wire_kind kind)
{
    mo_peer_end(b, begin_command(b, no, kind));
}

void mo_wire_set_again(char *frame)
{
    frame[AGAIN_AT] = 1;
}

bool mo_wire_number(struct mo_span data, uint32_t *no)
{
    return mo_peer_u32(&data, no);
}

struct command { /* the fields of one, and for whom */
    struct mo_member *m;
    struct mo_span in;
    bool again;
    mo_ack_fn *done;
    void *ctx;
};

/* A reader decides at most. The gate of its process has judged that, too; this
 * process knows the shares as they are now. */
static bool may_run(const struct command *c, bool decides)
{
    static const struct mo_ack no = {
        .code = "read_only",
        .message = {"this conversation is shared for reading", 39}};

    if (!mo_member_reads(c->m) || (decides && mo_member_may_decide(c->m)))
        return true;
    c->done(c->ctx, &no);
    return false;
}

static bool run_say(struct command *c)
{
    struct mo_saying s = {.again = c->again};

    if (!mo_peer_field(&c->in, &s.id, NULL) ||
        !mo_peer_field(&c->in, &s.text, NULL) || c->in.n > 0)
        return false;
    if (may_run(c, false))
        mo_chat_say_as(c->m, &s, c->done, c->ctx);
    return true;
}

static bool run_decide(struct command *c)
{
    struct mo_decision d = {.approved = false};
    uint32_t approved, remember;
    struct mo_span digest;
    bool has_digest;

    if (!mo_peer_field(&c->in, &d.call, NULL) ||
        !mo_peer_u32(&c->in, &approved) || approved > 1 ||
        !mo_peer_field(&c->in, &digest, &has_digest) ||
        !mo_peer_field(&c->in, &d.reason, NULL) ||
        !mo_peer_field(&c->in, &d.args, NULL) ||
        !mo_peer_u32(&c->in, &remember) || remember > MO_REMEMBER_ALWAYS ||
        !mo_peer_field(&c->in, &d.conditions, NULL) || c->in.n > 0)
        return false;
    d.approved = approved;
    d.digest = has_digest ? &digest : NULL;
    d.remember = (enum mo_remember)remember;
    if (may_run(c, d.remember == MO_REMEMBER_NO))
        mo_chat_decide(c->m, &d, c->done, c->ctx);
    return true;
}

static bool run_answer(struct command *c)
{
    struct mo_answer a = {.action = MO_ANSWER_CANCEL};
    uint32_t action;

    if (!mo_peer_field(&c->in, &a.request, NULL) ||
        !mo_peer_u32(&c->in, &action) || action > MO_ANSWER_CANCEL ||
        !mo_peer_field(&c->in, &a.content, NULL) || c->in.n > 0)
        return false;
    a.action = (enum mo_answer_action)action;
    if (may_run(c, false))
        mo_chat_answer(c->m, &a, c->done, c->ctx);
    return true;
}

static bool run_accept(struct command *c)
{
    struct mo_span tool, digest;

    if (!mo_peer_field(&c->in, &tool, NULL) ||
        !mo_peer_field(&c->in, &digest, NULL) || c->in.n > 0)
        return false;
    if (may_run(c, false))
        mo_chat_accept(c->m, tool, digest, c->done, c->ctx);
    return true;
}

static bool run_cancel(struct command *c)
{
    if (c->in.n == 0 && may_run(c, false))
        mo_chat_cancel(c->m, c->done, c->ctx);
    return c->in.n == 0;
}

static bool run_reset(struct command *c)
{
    if (c->in.n == 0 && may_run(c, false))
        mo_chat_reset(c->m, c->done, c->ctx);
    return c->in.n == 0;
}

static bool run_end(struct command *c)
{
    if (c->in.n == 0 && may_run(c, false))
        mo_chat_end(c->m, c->done, c->ctx);
    return c->in.n == 0;
}

static bool run_wish(struct command *c)
{
    struct mo_wish w = {.kind = MO_WISHES};
    uint32_t kind, high, low;

    if (!mo_peer_u32(&c->in, &kind) || kind >= MO_WISHES ||
        !mo_peer_u32(&c->in, &high) || !mo_peer_u32(&c->in, &low) ||
        !mo_peer_field(&c->in, &w.text, NULL) || c->in.n > 0)
        return false;
    w.kind = (enum mo_wish_kind)kind;
    w.seq = (uint64_t)high << 32 | low;
    if (may_run(c, false))
        mo_chat_wish(c->m, &w, c->done, c->ctx);
    return true;
}

int mo_wire_run(struct mo_member *m, struct mo_span data, mo_ack_fn *done,
                void *ctx)
{
    static bool (*const runs[])(struct command * c) = {
        [MO_WIRE_SAY] = run_say,       [MO_WIRE_DECIDE] = run_decide,
        [MO_WIRE_ANSWER] = run_answer, [MO_WIRE_ACCEPT] = run_accept,
        [MO_WIRE_CANCEL] = run_cancel, [MO_WIRE_RESET] = run_reset,
        [MO_WIRE_END] = run_end,       [MO_WIRE_WISH] = run_wish,
    };
    struct command c = {.m = m, .in = data, .done = done, .ctx = ctx};
    uint32_t no, kind, again;

    if (!mo_peer_u32(&c.in, &no) || !mo_peer_u32(&c.in, &kind) ||
        kind >= MO_WIRE_KINDS || !mo_peer_u32(&c.in, &again) || again > 1)
        return MO_EPROTO;
    c.again = again;
    return runs[kind](&c) ? 0 : MO_EPROTO;
}

/* --- answers -------------------------------------------------------------- */

void mo_wire_put_ack(struct mo_buf *b, uint32_t no, const struct mo_ack *a)
{
    size_t at = mo_peer_begin(b, MO_PEER_ACK);

    mo_peer_put_u32(b, no);
    mo_peer_put_u32(b, a->ok);
    mo_peer_put(b, mo_span_cstr(a->code ? a->code : ""));
    mo_peer_put(b, a->message);
    mo_peer_put(b, a->extra);
    mo_peer_end(b, at);
}

bool mo_wire_ack(struct mo_span data, uint32_t *no, struct mo_ack *out,
                 char code[MO_WIRE_CODE_MAX])
{
    struct mo_span name;
    uint32_t ok;

    if (!mo_peer_u32(&data, no) || !mo_peer_u32(&data, &ok) || ok > 1 ||
        !mo_peer_field(&data, &name, NULL) || name.n >= MO_WIRE_CODE_MAX ||
        !mo_peer_field(&data, &out->message, NULL) ||
        !mo_peer_field(&data, &out->extra, NULL) || data.n > 0)
        return false;
    (void)snprintf(code, MO_WIRE_CODE_MAX, "%.*s", (int)name.n, name.p);
    out->ok = ok;
    out->code = code;
    return true;
}

void mo_wire_put_closed(struct mo_buf *b, const char *reason,
                        const struct mo_err *why)
{
    size_t at = mo_peer_begin(b, MO_PEER_CLOSED);

    mo_peer_put(b, mo_span_cstr(reason));
    mo_peer_put_u32(b, why ? (uint32_t)-why->code : 0);
    mo_peer_put(b, mo_span_cstr(why ? why->msg : ""));
    mo_peer_end(b, at);
}

bool mo_wire_closed(struct mo_span data, const char **reason,
                    struct mo_err *why)
{
    static const char *const known[] = {
        "idle",     "closed", "killed",    "taken over",
        "shutdown", "failed", "elsewhere", MO_WIRE_REASON,
    };
    struct mo_span name, text;
    uint32_t code;

    if (!mo_peer_field(&data, &name, NULL) || !mo_peer_u32(&data, &code) ||
        code > 100 || !mo_peer_field(&data, &text, NULL) || data.n > 0)
        return false;
    *reason = known_text(name, known, MO_COUNT(known));
    if (*reason == NULL)
        *reason = "failed";
    mo_err_clear(why);
    if (code > 0)
        (void)mo_fail(why, -(int)code, "%.*s", (int)text.n, text.p);
    return true;
}
