#include "people/grants.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/map.h"

#define ROOM       "people"
#define ALL        "grant" /* every id begins with it */
#define ONE        "grant:"
#define OWNER      "grant-owner:"
#define USED       ":used"
#define DOC_MAX    ((size_t)4096)
#define KEY_MAX    (sizeof(OWNER) + MO_SHA256_HEX)
#define OWNERS_MAX (2 * MO_GRANTS_MAX)
#define DAY_MS     ((uint64_t)24 * 3600 * 1000)
#define SOON_MS    ((uint64_t)1000) /* after a reading that failed */

/* Invariants
 *  1. A reading removes the entries that it did not see, except those that were
 *     added after it began (round).
 *  2. A revoked entry stays in the map until a reading that began after the
 *     removal has ended: an earlier one may still bring its row. */
struct entry {
    struct mo_grant pub;
    uint64_t round;   /* of the last reading that saw it, or when it changed */
    uint64_t written; /* wall ms of the last use in the store */
    bool is_revoked, is_over;
};

struct owner {
    enum mo_role role;
    uint64_t seen;   /* wall ms of the last sign-in, exact to a day */
    bool is_changed; /* and not written yet */
    char name[MO_PERSON_MAX];
};

struct mo_grants {
    struct mo_grants_opts o;
    struct mo_map by_id;  /* struct entry */
    struct mo_map owners; /* struct owner */
    struct mo_list waiting;
    struct mo_timer tick;
    char last[MO_STORE_ID_MAX + 1]; /* id of the last row of the page before */
    uint64_t round;
    uint64_t began, read_at; /* ns: the last reading, and the last good one */
    unsigned ops;            /* under way in the store */
    unsigned changes;        /* when the last reading began */
    bool is_reading, is_read, is_closed;
};

/* --- operations in the store --------------------------------------------- */

static void free_grants(struct mo_grants *g)
{
    mo_map_each (en, &g->by_id)
        mo_free(en->value);
    mo_map_each (en, &g->owners)
        mo_free(en->value);
    mo_map_fini(&g->by_id);
    mo_map_fini(&g->owners);
    mo_free(g);
}

/* True: it was the last one of a closed table, which is gone now. */
static bool end_op(struct mo_grants *g)
{
    g->ops--;
    if (!g->is_closed || g->ops)
        return false;
    free_grants(g);
    return true;
}

struct change {
    struct mo_grants *grants;
    mo_done_fn *done;
    void *ctx;
};

static void on_changed(void *ctx, const struct mo_written *w,
                       const struct mo_err *why)
{
    struct change c = *(struct change *)ctx;

    (void)w;
    mo_free(ctx);
    if (c.done)
        c.done(c.ctx, why);
    else if (why)
        mo_log_err(mo_loop_log(c.grants->o.loop), MO_WARN, ROOM, why,
                   "the use of tokens cannot be recorded");
    (void)end_op(c.grants);
}

static int write_all(struct mo_grants *g, const struct mo_write *v, size_t n,
                     mo_done_fn *done, void *ctx, struct mo_err *e)
{
    const struct mo_store_batch b = {.writes = v, .n = n};
    struct change *c = mo_new(struct change);
    int rc;

    if (!c)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    *c = (struct change){g, done, ctx};
    rc = mo_store_write(g->o.store, &b, on_changed, c, e);
    if (rc < 0)
        mo_free(c);
    else
        g->ops++;
    return rc;
}

static struct mo_write write_of(const char *id, const struct mo_buf *doc)
{
    return (struct mo_write){.kind = MO_WRITE_MARK,
                             .id = mo_span_cstr(id),
                             .doc = doc ? mo_buf_view(doc) : mo_span(NULL, 0)};
}

/* --- owners -------------------------------------------------------------- */

static void key_of_owner(const char *owner, char out[KEY_MAX])
{
    memcpy(out, OWNER, sizeof(OWNER) - 1);
    mo_sha256_hex(mo_span_cstr(owner), out + sizeof(OWNER) - 1);
}

static struct owner *keep_owner(struct mo_grants *g, const char *name)
{
    struct owner *o = mo_map_get(&g->owners, mo_span_cstr(name));

    if (o)
        return o;
    o = mo_new(struct owner);
    if (!o)
        return NULL;
    (void)snprintf(o->name, sizeof(o->name), "%s", name);
    if (mo_map_add(&g->owners, mo_span_cstr(name), o) == 0)
        return o;
    mo_free(o);
    return NULL;
}

static void put_owner(const struct owner *o, struct mo_buf *doc)
{
    struct mo_jw w = mo_jw_object(doc);

    mo_jw_member_cstr(&w, "owner", o->name);
    mo_jw_member_cstr(&w, "role", mo_role_name(o->role));
    mo_jw_member_u64(&w, "seen", o->seen);
    mo_jw_end(&w);
}

static void take_owner(struct mo_grants *g, const struct mo_row *row)
{
    char name[MO_PERSON_MAX], role[16];
    struct mo_json_doc d;
    uint64_t seen = 0;
    struct owner *o;

    if (mo_json_parse(row->doc, 0, &d, NULL) < 0 ||
        mo_json_str_copy(mo_json_get(d.root, "owner"), name, sizeof(name)) <
            0 ||
        mo_json_str_copy(mo_json_get(d.root, "role"), role, sizeof(role)) < 0 ||
        mo_json_u64(mo_json_get(d.root, "seen"), &seen) < 0)
        return;
    o = keep_owner(g, name);
    if (!o || o->is_changed)
        return;
    o->role = mo_role_named(mo_span_cstr(role));
    o->seen = seen;
}

enum mo_role mo_grants_seen(const struct mo_grants *g, const char *owner)
{
    const struct owner *o = mo_map_get(&g->owners, mo_span_cstr(owner));

    if (!o || mo_wall_coarse_ms() >= o->seen + MO_GRANTS_SEEN_MS)
        return MO_ROLE_NONE;
    return o->role;
}

void mo_grants_saw(struct mo_grants *g, const char *owner, enum mo_role role)
{
    struct owner *o = mo_map_get(&g->owners, mo_span_cstr(owner));
    uint64_t now = mo_wall_coarse_ms();

    if (!o || (o->role == role && now < o->seen + DAY_MS))
        return;
    o->role = role;
    o->seen = now;
    o->is_changed = true;
}

/* --- reading ------------------------------------------------------------- */

static void tell_all(struct mo_grants *g, const struct mo_err *why)
{
    struct mo_list all;

    mo_list_init(&all);
    mo_list_splice(&all, &g->waiting);
    mo_list_drain (w, &all, struct mo_provider_wait, node)
        w->done(w, why);
}

/* What it opened is closed, once. */
static void end_entry(struct mo_grants *g, struct entry *en)
{
    if (en->is_over)
        return;
    en->is_over = true;
    if (g->o.ended)
        g->o.ended(g->o.ctx, en->pub.id);
}

static struct entry *keep_entry(struct mo_grants *g, const struct mo_grant *one)
{
    struct entry *en = mo_new(struct entry);

    if (!en)
        return NULL;
    en->pub = *one;
    if (mo_map_add(&g->by_id, mo_span_cstr(one->id), en) == 0)
        return en;
    mo_free(en);
    return NULL;
}

static void take_use(struct mo_grants *g, struct mo_span id, struct mo_span doc)
{
    struct entry *en = mo_map_get(&g->by_id, id);
    struct mo_json_doc d;
    uint64_t at = 0;

    if (!en || mo_json_parse(doc, 0, &d, NULL) < 0 ||
        mo_json_u64(mo_json_get(d.root, "at"), &at) < 0)
        return;
    if (at > en->pub.used)
        en->pub.used = at;
    if (at > en->written)
        en->written = at;
}

/* A token's row never changes, so one that is known is not read again. */
static void take_entry(struct mo_grants *g, struct mo_span id,
                       struct mo_span doc)
{
    struct entry *en = mo_map_get(&g->by_id, id);
    struct mo_grant one;
    struct mo_err e;

    if (!en) {
        if (mo_grant_parse(id, doc, &one, &e) < 0) {
            mo_log_err(mo_loop_log(g->o.loop), MO_WARN, ROOM, &e, "ignored");
            return;
        }
        en = keep_entry(g, &one);
    }
    if (en && !en->is_revoked)
        en->round = g->round;
}

static void take_row(struct mo_grants *g, const struct mo_row *row)
{
    struct mo_span id = row->id;

    if (mo_span_strip(&id, MO_SPAN(OWNER)))
        take_owner(g, row);
    else if (!mo_span_strip(&id, MO_SPAN(ONE)))
        return;
    else if (mo_span_ends(id, MO_SPAN(USED)))
        take_use(g, mo_span_head(id, id.n - (sizeof(USED) - 1)), row->doc);
    else
        take_entry(g, id, row->doc);
}

static void remove_entry(struct mo_grants *g, struct entry *en)
{
    end_entry(g, en);
    (void)mo_map_del(&g->by_id, mo_span_cstr(en->pub.id));
    mo_free(en);
}

/* The map must not change while it is walked over. */
static struct entry *find_unseen(const struct mo_grants *g)
{
    mo_map_each (at, &g->by_id) {
        struct entry *en = at->value;

        if (en->round < g->round)
            return en;
    }
    return NULL;
}

static void drop_unseen(struct mo_grants *g)
{
    for (struct entry *en = find_unseen(g); en; en = find_unseen(g))
        remove_entry(g, en);
}

/* Another worker has changed something since the last reading began. */
static bool is_outdated(const struct mo_grants *g)
{
    return g->o.changes && atomic_load(g->o.changes) != g->changes;
}

static void tell_workers(struct mo_grants *g)
{
    if (!g->o.changes)
        return;
    if (atomic_fetch_add(g->o.changes, 1) == g->changes)
        g->changes++; /* we know it */
}

static void start_tick(struct mo_grants *g);
static void begin_reading(struct mo_grants *g);

static void end_reading(struct mo_grants *g, const struct mo_err *why)
{
    g->is_reading = false;
    if (why) {
        mo_log_err(mo_loop_log(g->o.loop), MO_WARN, ROOM, why,
                   "personal tokens cannot be read");
    } else {
        g->is_read = true;
        g->read_at = mo_loop_now(g->o.loop);
        drop_unseen(g);
    }
    if (!why && is_outdated(g) && !mo_list_empty(&g->waiting)) {
        begin_reading(g); /* they asked for what is new */
        return;
    }
    start_tick(g);
    g->ops++; /* who is told may close the table */
    tell_all(g, why);
    (void)end_op(g);
}

static void read_page(struct mo_grants *g);

static void on_page(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct mo_grants *g = ctx;
    const struct mo_row *last;

    if (end_op(g) || g->is_closed)
        return;
    for (size_t i = 0; !why && i < rows->n; i++)
        take_row(g, &rows->v[i]);
    if (why || !rows->more || rows->n == 0) {
        end_reading(g, why);
        return;
    }
    last = &rows->v[rows->n - 1];
    (void)snprintf(g->last, sizeof(g->last), "%.*s", (int)last->id.n,
                   last->id.p);
    read_page(g);
}

/* If the store refuses at once, the tick tries again. */
static void read_page(struct mo_grants *g)
{
    const struct mo_read r = {.kind = MO_READ_MARKS,
                              .text = MO_SPAN(ALL),
                              .id = mo_span_cstr(g->last),
                              .limit = MO_STORE_ROWS_MAX};

    if (mo_store_read(g->o.store, &r, on_page, g, NULL) == 0) {
        g->ops++;
        return;
    }
    g->is_reading = false;
    mo_timer_start(g->o.loop, &g->tick, SOON_MS);
}

static void begin_reading(struct mo_grants *g)
{
    g->is_reading = true;
    g->began = mo_loop_now(g->o.loop);
    g->round++;
    if (g->o.changes)
        g->changes = atomic_load(g->o.changes);
    g->last[0] = '\0';
    read_page(g);
}

void mo_grants_read(struct mo_grants *g, struct mo_provider_wait *w)
{
    mo_list_push(&g->waiting, &w->node);
    if (!g->is_reading)
        begin_reading(g);
}

/* --- what is written now and then ---------------------------------------- */

static void write_use(struct mo_grants *g, struct entry *en)
{
    char id[sizeof(ONE) + MO_GRANT_ID + sizeof(USED)];
    mo_autobuf struct mo_buf doc = {.max = DOC_MAX};
    struct mo_jw w = mo_jw_object(&doc);
    struct mo_write one;

    mo_jw_member_u64(&w, "at", en->pub.used);
    mo_jw_end(&w);
    (void)snprintf(id, sizeof(id), ONE "%s" USED, en->pub.id);
    one = write_of(id, &doc);
    if (write_all(g, &one, 1, NULL, NULL, NULL) == 0)
        en->written = en->pub.used;
}

static void write_owner(struct mo_grants *g, struct owner *o)
{
    mo_autobuf struct mo_buf doc = {.max = DOC_MAX};
    char id[KEY_MAX];
    struct mo_write one;

    key_of_owner(o->name, id);
    put_owner(o, &doc);
    one = write_of(id, &doc);
    if (write_all(g, &one, 1, NULL, NULL, NULL) == 0)
        o->is_changed = false;
}

static int write_removal(struct mo_grants *g, struct mo_span id,
                         mo_done_fn *done, void *ctx, struct mo_err *e)
{
    char key[sizeof(ONE) + MO_GRANT_ID], used[sizeof(key) + sizeof(USED)];
    struct mo_write v[2];

    (void)snprintf(key, sizeof(key), ONE "%.*s", (int)id.n, id.p);
    (void)snprintf(used, sizeof(used), "%s" USED, key);
    v[0] = write_of(key, NULL);
    v[1] = write_of(used, NULL);
    return write_all(g, v, MO_COUNT(v), done, ctx, e);
}

/* all: also uses of less than a minute ago, because the server ends. */
static void write_uses(struct mo_grants *g, bool all)
{
    mo_map_each (at, &g->by_id) {
        struct entry *en = at->value;

        if (!en->is_revoked && en->pub.used > en->written &&
            (all || en->pub.used >= en->written + MO_GRANTS_USED_MS))
            write_use(g, en);
    }
    mo_map_each (at, &g->owners) {
        struct owner *o = at->value;

        if (o->is_changed)
            write_owner(g, o);
    }
}

static void end_expired(struct mo_grants *g)
{
    uint64_t now = mo_wall_ms();

    mo_map_each (at, &g->by_id) {
        struct entry *en = at->value;

        if (en->pub.expires > now || en->is_revoked)
            continue;
        end_entry(g, en);
        if (en->pub.expires + MO_GRANTS_KEPT_MS <= now)
            (void)write_removal(g, mo_span_cstr(en->pub.id), NULL, NULL, NULL);
    }
}

/* The next reading, or the moment at which a token expires. */
static void start_tick(struct mo_grants *g)
{
    uint64_t now = mo_wall_ms();
    uint64_t ms = g->is_read ? MO_GRANTS_READ_MS : SOON_MS;

    mo_map_each (at, &g->by_id) {
        const struct entry *en = at->value;

        if (!en->is_over && en->pub.expires <= now)
            ms = 1;
        else if (!en->is_over && en->pub.expires - now < ms)
            ms = en->pub.expires - now;
    }
    if (!g->is_closed)
        mo_timer_start(g->o.loop, &g->tick, ms);
}

static void on_tick(struct mo_timer *t)
{
    struct mo_grants *g = mo_container_of(t, struct mo_grants, tick);
    uint64_t age = mo_loop_now(g->o.loop) - g->began;

    end_expired(g);
    write_uses(g, false);
    if (!g->is_reading && (g->by_id.len || !g->is_read) &&
        (age >= MO_GRANTS_READ_MS * MO_MS || !g->is_read))
        begin_reading(g);
    else
        start_tick(g);
}

/* --- checking ------------------------------------------------------------ */

int mo_grants_check(struct mo_grants *g, struct mo_span text,
                    const struct mo_grant **out, struct mo_err *e)
{
    uint64_t now = mo_loop_now(g->o.loop);
    struct entry *en;

    if (!mo_grant_looks_like(text))
        return mo_fail(e, MO_EPOLICY, "the token is malformed");
    if (!g->is_read || now - g->read_at >= MO_GRANTS_STALE_MS * MO_MS)
        return mo_fail(e, MO_EUNAVAIL, "personal tokens cannot be read");
    if (is_outdated(g))
        return mo_fail(e, MO_EUNAVAIL, "personal tokens must be read");
    en = mo_map_get(&g->by_id, mo_grant_id_of(text));
    if (!en && (g->is_reading || now - g->began >= MO_GRANTS_PAUSE_MS * MO_MS))
        return mo_fail(e, MO_EUNAVAIL, "personal tokens must be read");
    if (!en || en->is_revoked || !mo_grant_is(&en->pub, text))
        return mo_fail(e, MO_EPOLICY,
                       "there is no such personal token (any more)");
    if (en->is_over || en->pub.expires <= mo_wall_coarse_ms())
        return mo_fail(e, MO_EPOLICY, "the personal token has expired");
    if (g->o.changes && !en->pub.used)
        mo_timer_start(g->o.loop, &g->tick, 1); /* others want to show it */
    en->pub.used = mo_wall_coarse_ms();
    *out = &en->pub;
    return 0;
}

const struct mo_grant *mo_grants_find(const struct mo_grants *g,
                                      struct mo_span id)
{
    const struct entry *en = mo_map_get(&g->by_id, id);

    return en && !en->is_revoked ? &en->pub : NULL;
}

void mo_grants_each(const struct mo_grants *g,
                    void (*fn)(void *ctx, const struct mo_grant *one),
                    void *ctx)
{
    mo_map_each (at, &g->by_id) {
        const struct entry *en = at->value;

        if (!en->is_revoked)
            fn(ctx, &en->pub);
    }
}

/* --- changing ------------------------------------------------------------ */

static unsigned count_of(const struct mo_grants *g, const char *owner)
{
    unsigned n = 0;

    mo_map_each (at, &g->by_id) {
        const struct entry *en = at->value;

        n += !en->is_revoked && strcmp(en->pub.owner, owner) == 0;
    }
    return n;
}

static int check_room(const struct mo_grants *g, const struct mo_grant *one,
                      struct mo_err *e)
{
    if (!g->is_read)
        return mo_fail(e, MO_EUNAVAIL, "personal tokens cannot be read");
    if (g->by_id.len >= MO_GRANTS_MAX)
        return mo_fail(e, MO_EBUSY, "this server has %d tokens already",
                       MO_GRANTS_MAX);
    if (count_of(g, one->owner) >= MO_GRANTS_PERSON)
        return mo_fail(e, MO_EBUSY,
                       "a person has at most %d tokens; revoke one first",
                       MO_GRANTS_PERSON);
    return 0;
}

struct adding {
    struct mo_grants *grants;
    struct mo_grant one;
    mo_done_fn *done;
    void *ctx;
};

/* If it is not known whether it was written, nobody has its secret: a later
 * reading shows it in the list. */
static void on_added(void *ctx, const struct mo_err *why)
{
    struct adding a = *(struct adding *)ctx;
    struct entry *en;
    struct mo_err e;

    mo_free(ctx);
    if (!why && !a.grants->is_closed) {
        en = mo_map_get(&a.grants->by_id, mo_span_cstr(a.one.id));
        if (!en)
            en = keep_entry(a.grants, &a.one);
        if (en)
            en->round = a.grants->round;
        else if (mo_fail(&e, MO_ENOMEM, "out of memory") < 0)
            why = &e;
        start_tick(a.grants);
    }
    if (!a.grants->is_closed)
        tell_workers(a.grants);
    a.done(a.ctx, why);
}

static int write_new(struct mo_grants *g, const struct adding *a,
                     const struct owner *o, struct mo_err *e)
{
    mo_autobuf struct mo_buf doc = {.max = DOC_MAX}, who = {.max = DOC_MAX};
    char id[sizeof(ONE) + MO_GRANT_ID], key[KEY_MAX];
    struct mo_write v[2];
    size_t n = 1;

    mo_grant_put(&a->one, &doc);
    (void)snprintf(id, sizeof(id), ONE "%s", a->one.id);
    v[0] = write_of(id, &doc);
    if (o) {
        key_of_owner(o->name, key);
        put_owner(o, &who);
        v[n++] = write_of(key, &who);
    }
    if (mo_buf_err(&doc) || mo_buf_err(&who))
        return mo_fail(e, MO_ENOMEM, "out of memory");
    return write_all(g, v, n, on_added, (void *)(uintptr_t)a, e);
}

int mo_grants_add(struct mo_grants *g, const struct mo_grant *one,
                  enum mo_role seen, mo_done_fn *done, void *ctx,
                  struct mo_err *e)
{
    bool is_of_provider = strchr(one->owner, ':') != NULL;
    struct adding *a;
    struct owner *o = NULL;
    int rc = check_room(g, one, e);

    if (rc < 0)
        return rc;
    a = mo_new(struct adding);
    if (a && is_of_provider)
        o = keep_owner(g, one->owner);
    if (!a || (is_of_provider && !o)) {
        mo_free(a);
        return mo_fail(e, MO_ENOMEM, "out of memory");
    }
    if (o)
        o->role = seen;
    if (o && !o->seen)
        o->seen = mo_wall_coarse_ms();
    *a = (struct adding){g, *one, done, ctx};
    rc = write_new(g, a, o, e);
    if (rc < 0)
        mo_free(a);
    return rc;
}

struct revoking {
    struct mo_grants *grants;
    char id[MO_GRANT_ID + 1];
    mo_done_fn *done;
    void *ctx;
};

static void on_revoked(void *ctx, const struct mo_err *why)
{
    struct revoking r = *(struct revoking *)ctx;
    struct entry *en = mo_map_get(&r.grants->by_id, mo_span_cstr(r.id));

    mo_free(ctx);
    if (en)
        en->round = r.grants->round + 1;
    if (!r.grants->is_closed)
        tell_workers(r.grants);
    r.done(r.ctx, why);
}

int mo_grants_revoke(struct mo_grants *g, struct mo_span id, mo_done_fn *done,
                     void *ctx, struct mo_err *e)
{
    struct entry *en = mo_map_get(&g->by_id, id);
    struct revoking *r;
    int rc;

    if (!en || en->is_revoked)
        return mo_fail(e, MO_ENOTFOUND, "there is no such token");
    r = mo_new(struct revoking);
    if (!r)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    *r = (struct revoking){.grants = g, .done = done, .ctx = ctx};
    memcpy(r->id, en->pub.id, sizeof(r->id));
    rc = write_removal(g, id, on_revoked, r, e);
    if (rc < 0) {
        mo_free(r);
        return rc;
    }
    en->is_revoked = true;
    en->round = UINT64_MAX; /* until it is out of the store */
    end_entry(g, en);
    return 0;
}

/* --- begin and end ------------------------------------------------------- */

int mo_grants_open(const struct mo_grants_opts *o, struct mo_grants **out,
                   struct mo_err *e)
{
    struct mo_grants *g = mo_new(struct mo_grants);

    if (!g)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    g->o = *o;
    mo_map_init(&g->by_id, MO_GRANTS_MAX);
    mo_map_init(&g->owners, OWNERS_MAX);
    mo_list_init(&g->waiting);
    mo_timer_init(&g->tick, on_tick);
    begin_reading(g);
    *out = g;
    return 0;
}

void mo_grants_close(struct mo_grants *g)
{
    write_uses(g, true);
    mo_timer_stop(g->o.loop, &g->tick);
    g->o.ended = NULL;
    g->is_closed = true;
    g->ops++;
    tell_all(g, mo_error(MO_ECANCELED, "the server is shutting down"));
    (void)end_op(g);
}
