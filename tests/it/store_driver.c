/* store_driver.c - a store by the line, for tests that need to see it from
 * outside.
 *
 *   store_driver URL DEADLINE_MS [CA_FILE [REPLICAS]]
 *
 * With MO_NO_INDEX in the environment it indexes nothing, as programs before
 * the full-text index of Redis.
 *
 * Commands on stdin, one a line; an answer to each on stdout, in the order
 * they come: "TAG ok ..." or "TAG NAME-OF-ERROR message". At the end of stdin
 * the store is closed and the program ends.
 *
 *   TAG session S               TAG entry S DOC [FENCE]
 *   TAG call S ID               TAG run S ID      (pending -> running)
 *   TAG history S               TAG state S ID
 *   TAG take NAME WAIT_MS       TAG drop NAME     TAG who NAME
 *   TAG health                  TAG audit S DOC   TAG audits
 *   TAG search WORD [SESSION,SESSION...]          TAG forget S
 *   TAG count rate|held|day NAME ADD
 *
 * A lease that is lost: "lost NAME why". */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "loop/stream.h"
#include "store/store.h"

#define WORDS 6

struct driver {
    struct mo_loop *l;
    struct mo_store *s;
    struct mo_buf in;
    struct mo_map leases; /* name -> struct held */
};

struct ask {
    struct driver *d;
    char tag[32];
    bool docs;
};

struct held {
    struct driver *d;
    struct mo_lease *lease;
    char name[MO_STORE_ID_MAX + 1], tag[32];
};

static void say(const char *tag, const struct mo_err *why, const char *rest)
{
    if (why)
        (void)printf("%s %s %s\n", tag, mo_err_name(why->code), why->msg);
    else
        (void)printf("%s ok%s%s\n", tag, *rest ? " " : "", rest);
    (void)fflush(stdout);
}

static struct ask *ask_new(struct driver *d, struct mo_span tag)
{
    struct ask *a = mo_new(struct ask);

    MO_BUG_ON(!a);
    a->d = d;
    (void)snprintf(a->tag, sizeof(a->tag), "%.*s", (int)tag.n, tag.p);
    return a;
}

static void on_written(void *ctx, const struct mo_written *w,
                       const struct mo_err *why)
{
    struct ask *a = ctx;
    char rest[64];

    (void)snprintf(rest, sizeof(rest), "%llu",
                   (unsigned long long)(why ? 0 : w->seq));
    say(a->tag, why, rest);
    mo_free(a);
}

static void on_rows(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct ask *a = ctx;
    struct mo_buf b;

    mo_buf_init(&b, (size_t)16 * 1024 * 1024);
    (void)mo_buf_u64(&b, rows->n);
    for (size_t i = 0; i < rows->n; i++) {
        (void)mo_buf_putc(&b, ' ');
        if (a->docs)
            (void)mo_buf_span(&b, rows->v[i].doc);
        else
            (void)mo_buf_u64(&b, rows->v[i].state);
    }
    say(a->tag, why, mo_buf_cstr(&b));
    mo_buf_fini(&b);
    mo_free(a);
}

static void on_who(void *ctx, struct mo_span owner, uint64_t fence,
                   const struct mo_err *why)
{
    struct ask *a = ctx;
    char rest[256];

    (void)snprintf(rest, sizeof(rest), "%.*s %llu", (int)owner.n,
                   owner.n ? owner.p : "", (unsigned long long)fence);
    say(a->tag, why, owner.n ? rest : "");
    mo_free(a);
}

/* --- commands ------------------------------------------------------------ */

static void write_one(struct driver *d, const struct mo_span *w, uint64_t fence,
                      struct mo_write what)
{
    struct mo_store_batch b = {w[2], fence, &what, 1};
    struct ask *a = ask_new(d, w[0]);
    struct mo_err e;

    if (mo_store_write(d->s, &b, on_written, a, &e) == 0)
        return;
    say(a->tag, &e, "");
    mo_free(a);
}

static void read_some(struct driver *d, const struct mo_span *w, bool docs,
                      struct mo_read what)
{
    struct ask *a = ask_new(d, w[0]);
    struct mo_err e;

    a->docs = docs;
    what.limit = MO_STORE_ROWS_MAX;
    if (mo_store_read(d->s, &what, on_rows, a, &e) == 0)
        return;
    say(a->tag, &e, "");
    mo_free(a);
}

static void do_session(struct driver *d, const struct mo_span *w)
{
    write_one(
        d, w, 0,
        (struct mo_write){.kind = MO_WRITE_SESSION, .doc = MO_SPAN("{}")});
}

static void do_entry(struct driver *d, const struct mo_span *w)
{
    uint64_t fence = 0;

    (void)mo_span_u64(w[4], &fence);
    write_one(
        d, w, fence,
        (struct mo_write){.kind = MO_WRITE_ENTRY, .doc = w[3], .text = w[3]});
}

static void do_call(struct driver *d, const struct mo_span *w)
{
    write_one(d, w, 0,
              (struct mo_write){
                  .kind = MO_WRITE_CALL, .id = w[3], .doc = MO_SPAN("{}")});
}

static void do_run(struct driver *d, const struct mo_span *w)
{
    write_one(d, w, 0,
              (struct mo_write){.kind = MO_WRITE_MOVE,
                                .id = w[3],
                                .from = MO_CALL_BIT(MO_CALL_PENDING),
                                .to = MO_CALL_RUNNING});
}

static void do_audit(struct driver *d, const struct mo_span *w)
{
    write_one(d, w, 0, (struct mo_write){.kind = MO_WRITE_AUDIT, .doc = w[3]});
}

static void do_audits(struct driver *d, const struct mo_span *w)
{
    read_some(d, w, true, (struct mo_read){.kind = MO_READ_AUDIT});
}

static void do_history(struct driver *d, const struct mo_span *w)
{
    read_some(d, w, true,
              (struct mo_read){.kind = MO_READ_HISTORY, .session = w[2]});
}

static void do_forget(struct driver *d, const struct mo_span *w)
{
    write_one(d, w, 0, (struct mo_write){.kind = MO_WRITE_FORGET});
}

static void do_search(struct driver *d, const struct mo_span *w)
{
    mo_autobuf struct mo_buf among = {.max = MO_STORE_AMONG_MAX};
    struct mo_span rest = w[3];

    while (rest.n) {
        mo_buf_span(&among, mo_span_cut(&rest, ','));
        mo_buf_putc(&among, '\n');
    }
    read_some(d, w, true,
              (struct mo_read){.kind = MO_READ_SEARCH,
                               .text = w[2],
                               .among = mo_buf_view(&among)});
}

static void text_of(struct mo_span doc, struct mo_buf *out)
{
    mo_buf_span(out, doc);
}

static void do_state(struct driver *d, const struct mo_span *w)
{
    read_some(
        d, w, false,
        (struct mo_read){.kind = MO_READ_CALL, .session = w[2], .id = w[3]});
}

static void on_held(void *ctx, struct mo_lease *l, uint64_t fence,
                    const struct mo_err *why)
{
    struct held *h = ctx;
    char rest[32];

    (void)l;
    (void)snprintf(rest, sizeof(rest), "%llu", (unsigned long long)fence);
    say(h->tag, why, rest);
    if (!why)
        return;
    (void)mo_map_del(&h->d->leases, mo_span_cstr(h->name));
    mo_free(h);
}

static void on_lost(void *ctx, const struct mo_err *why)
{
    struct held *h = ctx;

    (void)printf("lost %s %s\n", h->name, why->msg);
    (void)fflush(stdout);
    (void)mo_map_del(&h->d->leases, mo_span_cstr(h->name));
    mo_free(h);
}

static void do_take(struct driver *d, const struct mo_span *w)
{
    static const struct mo_lease_cb cb = {on_held, on_lost};
    struct held *h = mo_new(struct held);
    uint64_t wait_ms = 0;
    struct mo_err e;

    MO_BUG_ON(!h);
    h->d = d;
    (void)mo_span_u64(w[3], &wait_ms);
    (void)snprintf(h->name, sizeof(h->name), "%.*s", (int)w[2].n, w[2].p);
    (void)snprintf(h->tag, sizeof(h->tag), "%.*s", (int)w[0].n, w[0].p);
    MO_BUG_ON(mo_map_put(&d->leases, w[2], h, NULL) < 0);
    if (mo_lease_take(d->s, w[2], MO_SPAN("driver"), wait_ms, &cb, h, &h->lease,
                      &e) < 0)
        abort();
}

static void do_drop(struct driver *d, const struct mo_span *w)
{
    struct held *h = mo_map_del(&d->leases, w[2]);
    char tag[32];

    (void)snprintf(tag, sizeof(tag), "%.*s", (int)w[0].n, w[0].p);
    if (h)
        mo_lease_drop(h->lease);
    mo_free(h);
    say(tag, NULL, "");
}

static void do_who(struct driver *d, const struct mo_span *w)
{
    struct ask *a = ask_new(d, w[0]);
    struct mo_err e;

    if (mo_lease_holder(d->s, w[2], on_who, a, &e) < 0)
        abort();
}

static void on_counted(void *ctx, const struct mo_counted *c,
                       const struct mo_err *why)
{
    struct ask *a = ctx;

    say(a->tag, why, !why && c->refused ? "refused" : "");
    mo_free(a);
}

static void do_count(struct driver *d, const struct mo_span *w)
{
    struct mo_counter c = {.kind = mo_span_is(w[2], "rate")   ? MO_COUNTER_RATE
                                   : mo_span_is(w[2], "held") ? MO_COUNTER_HELD
                                                              : MO_COUNTER_DAY,
                           .name = w[3],
                           .holder = MO_SPAN("driver")};
    struct ask *a = ask_new(d, w[0]);
    uint64_t add = 0;
    struct mo_err e;

    (void)mo_span_u64(w[4], &add);
    c.add = (int64_t)add;
    if (mo_store_count(d->s, &c, 1, on_counted, a, &e) < 0)
        abort();
}

static void do_health(struct driver *d, const struct mo_span *w)
{
    struct mo_store_health h = mo_store_health(d->s);

    (void)printf("%.*s ok %s %llu %s\n", (int)w[0].n, w[0].p,
                 h.up ? "up" : "down", (unsigned long long)h.reconnects, h.why);
    (void)fflush(stdout);
}

static void run_line(struct driver *d, struct mo_span line)
{
    static const struct {
        const char *name;
        void (*run)(struct driver *d, const struct mo_span *w);
    } commands[] = {
        {"session", do_session}, {"entry", do_entry},   {"call", do_call},
        {"run", do_run},         {"audit", do_audit},   {"audits", do_audits},
        {"history", do_history}, {"state", do_state},   {"take", do_take},
        {"drop", do_drop},       {"who", do_who},       {"health", do_health},
        {"search", do_search},   {"forget", do_forget}, {"count", do_count},
    };
    struct mo_span w[WORDS] = {{0}};

    for (int i = 0; i < WORDS && line.p; i++)
        w[i] = mo_span_cut(&line, ' ');
    for (size_t i = 0; i < MO_COUNT(commands); i++) {
        if (mo_span_is(w[1], commands[i].name))
            commands[i].run(d, w);
    }
}

static void on_read(void *ctx, char *p, size_t n)
{
    struct driver *d = ctx;
    ptrdiff_t at;

    MO_BUG_ON(mo_buf_put(&d->in, p, n) < 0);
    for (at = mo_span_find(mo_buf_view(&d->in), '\n'); at >= 0;
         at = mo_span_find(mo_buf_view(&d->in), '\n')) {
        run_line(d, mo_span(d->in.p, (size_t)at));
        mo_buf_drop(&d->in, (size_t)at + 1);
    }
}

static void on_gone(void *ctx)
{
    mo_loop_stop(((struct driver *)ctx)->l);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct driver *d = ctx;

    (void)why;
    mo_store_close(d->s, on_gone, d);
}

int main(int argc, char **argv)
{
    static const struct mo_stream_cb cb = {.on_read = on_read,
                                           .on_close = on_close};
    struct driver d = {0};
    struct mo_store_opts o = {0};
    struct mo_stream *in;
    struct mo_err e;

    if (argc < 3)
        return 2;
    o.url = argv[1];
    o.deadline_ms = strtoull(argv[2], NULL, 10);
    o.lease_ttl_ms = 6000;
    if (!getenv("MO_NO_INDEX"))
        o.text_of = text_of;
    if (argc > 3)
        o.ca_file = mo_span_cstr(argv[3]);
    if (argc > 4)
        o.replicas = (unsigned)strtoul(argv[4], NULL, 10);
    mo_buf_init(&d.in, (size_t)8 * 1024 * 1024);
    mo_map_init(&d.leases, 1000);
    d.l = mo_loop_new(NULL, &e);
    MO_BUG_ON(!d.l);
    if (mo_store_open(d.l, &o, &d.s, &e) < 0) {
        say("open", &e, "");
        mo_loop_free(d.l);
        return 1;
    }
    MO_BUG_ON(mo_stream_from_fds(d.l, dup(0), -1, &in, &e) < 0);
    mo_stream_attach(in, &cb, &d);
    say("open", NULL, "");
    mo_loop_run(d.l);
    mo_loop_free(d.l);
    mo_map_fini(&d.leases);
    mo_buf_fini(&d.in);
    return 0;
}
