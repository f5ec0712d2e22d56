#include "audit/audit_attempts.h"

#include "base/clock.h"

#define COPY(field, text) copy_text(field, sizeof(field), text)

static void copy_text(char *out, size_t size, struct mo_span text)
{
    size_t n = text.n < size ? text.n : size - 1;

    for (size_t i = 0; i < n; i++)
        out[i] = (char)(text.p[i] >= ' ' && text.p[i] <= '~' ? text.p[i] : '?');
    out[n] = '\0';
}

/* "1.2.3.4:567" and "[::1]:567" without the port; other names as they are. */
static struct mo_span address_of(struct mo_span peer)
{
    for (size_t i = peer.n; i > 0; i--)
        if (peer.p[i - 1] == ':')
            return mo_span_head(peer, i - 1);
    return peer;
}

/* The entry of that key, a free one, or the one of all others. */
static struct mo_audit_attempt *find_entry(struct mo_audit_attempts *t,
                                           const struct mo_audit_attempt *like)
{
    struct mo_audit_attempt *others = &t->v[MO_AUDIT_ATTEMPTS_PEERS];
    struct mo_audit_attempt *unused = NULL;

    for (struct mo_audit_attempt *x = t->v; x < others; x++) {
        if (x->used && strcmp(x->peer, like->peer) == 0 &&
            strcmp(x->reason, like->reason) == 0 &&
            strcmp(x->who, like->who) == 0)
            return x;
        if (!x->used && !unused)
            unused = x;
    }
    return unused ? unused : others;
}

static void write_entry(struct mo_audit_attempt *x, mo_audit_attempt_fn *write,
                        void *ctx)
{
    const struct mo_audit_row r = {
        .event = "kind",
        .subject = mo_span_cstr(x->kind),
        .outcome = "refused",
        .reason = x->reason,
        .via = x->via,
        .who = mo_span_cstr(x->who),
        .peer = mo_span_cstr(x->peer),
        .host = mo_span_cstr(x->host),
        .origin = mo_span_cstr(x->origin),
        .path = mo_span_cstr(x->path),
        .count = x->count,
    };

    write(ctx, &r);
    x->count = 0;
}

void mo_audit_attempts_add(struct mo_audit_attempts *t,
                           const struct mo_audit_row *r, uint64_t now,
                           mo_audit_attempt_fn *write, void *ctx)
{
    struct mo_audit_attempt new = {.used = true}, *x;

    COPY(new.kind, r->subject.n ? r->subject : MO_SPAN("access"));
    COPY(new.peer, address_of(r->peer));
    COPY(new.reason, mo_span_cstr(r->reason));
    COPY(new.via, mo_span_cstr(r->via));
    COPY(new.who, r->who);
    COPY(new.path, r->path);
    COPY(new.host, r->host);
    COPY(new.origin, r->origin);
    x = find_entry(t, &new);
    if (x == &t->v[MO_AUDIT_ATTEMPTS_PEERS]) {
        COPY(new.peer, MO_SPAN("others"));
        new.who[0] = '\0';
    }
    new.count = x->count + 1;
    new.due = x->due;
    new.period = x->period;
    if (!x->used) {
        new.period = MO_AUDIT_ATTEMPTS_MS *MO_MS;
        new.due = now + new.period;
        write_entry(&new, write, ctx);
    }
    *x = new;
}

static void flush_entry(struct mo_audit_attempt *x, uint64_t now,
                        mo_audit_attempt_fn *write, void *ctx)
{
    if (x->count == 0) {
        x->used = false;
        return;
    }
    write_entry(x, write, ctx);
    x->period *= 2;
    if (x->period > MO_AUDIT_ATTEMPTS_MOST * MO_MS)
        x->period = MO_AUDIT_ATTEMPTS_MOST * MO_MS;
    x->due = now + x->period;
}

bool mo_audit_attempts_flush(struct mo_audit_attempts *t, uint64_t now,
                             bool all, mo_audit_attempt_fn *write, void *ctx)
{
    bool left = false;

    for (size_t i = 0; i < MO_COUNT(t->v); i++) {
        struct mo_audit_attempt *x = &t->v[i];

        if (x->used && (all || x->due <= now))
            flush_entry(x, now, write, ctx);
        left |= x->used;
    }
    return left;
}
