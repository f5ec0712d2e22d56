/* refresh.c - reads the lists of servers into the catalogue.
 *
 * All lists are read when a child opens, one of them when its server
 * says that it changed. A server whose lists are unknown is started when
 * somebody asks for them.
 *
 * A list that cannot be read leaves the old one in place.
 *
 * A list request waits for servers that were never read, each for a limited
 * time after the first request (state.h). Later requests do not wait for a
 * server that is late or fails again and again. */
#include "gateway/call/forwarded_call.h"
#include "gateway/gw_priv.h"
#include "mcp/client/mirror.h"
#include "mcp/definition.h"

#define ERROR_TEXT_MAX 1024

static const struct mo_json none = {NULL, 0};

/* --- other workers ------------------------------------------------------- */

static atomic_uint *count_of(const struct server_slot *s)
{
    struct mo_span name = mo_span_cstr(mo_upstream_server(s->up)->name);

    return &s->g->lists->v[mo_siphash(0, 0, name) % MO_LISTS_SHARED];
}

/* Counts one more change of this worker. If another one has made one, too,
 * *seen stays behind, and it is read. */
static void count(atomic_uint *changes, unsigned *seen)
{
    if (atomic_fetch_add(changes, 1) == *seen)
        ++*seen;
}

static void wake_others(struct mo_gateway *g)
{
    count(&g->lists->all, &g->lists_all);
    g->tell(g->tell_ctx);
}

/* Its lists were written to the cache. */
static void tell_others(struct server_slot *s)
{
    if (!s->g->lists)
        return;
    count(count_of(s), &s->shared);
    wake_others(s->g);
}

/* The server says that a list has changed, and it is the same: its clients at
 * other workers are told as well, unless it is the server of one of them. */
static void announce_to_others(struct server_slot *s, enum mo_ep_what what)
{
    const struct mo_gw_server *u = mo_upstream_server(s->up);

    if (!s->g->lists || u->per_session || u->per_person)
        return;
    count(&s->g->lists->announced[what], &s->g->announced[what]);
    wake_others(s->g);
}

void mo_catalog_refresh_begin(struct server_slot *s)
{
    if (s->g->lists)
        s->shared = atomic_load(count_of(s));
}

static void tell_announced(struct mo_gateway *g)
{
    for (size_t i = 0; i < MO_COUNT(g->announced); i++) {
        unsigned now = atomic_load(&g->lists->announced[i]);

        if (now == g->announced[i])
            continue;
        g->announced[i] = now;
        mo_gw_changed(g, (enum mo_ep_what)i);
    }
}

static void read_again(struct server_slot *s)
{
    struct mo_gateway *g = s->g;
    bool changed[MO_CAT_KINDS];

    if (mo_catalog_reread(g->cat, s->no, changed) < 0)
        return;
    s->read_ms = mo_now_ns() / MO_MS;
    for (enum mo_cat_kind k = 0; k < MO_CAT_KINDS; k++)
        if (changed[k])
            mo_gw_changed(g, mo_gw_change_of(k));
}

void mo_gateway_catch_up(struct mo_gateway *g)
{
    unsigned all = g->lists ? atomic_load(&g->lists->all) : g->lists_all;

    if (all == g->lists_all || g->closing)
        return;
    g->lists_all = all;
    for (size_t i = 0; i < g->n; i++) {
        unsigned now = atomic_load(count_of(g->v[i]));

        if (now == g->v[i]->shared)
            continue;
        g->v[i]->shared = now;
        read_again(g->v[i]);
    }
    tell_announced(g);
    mo_gw_watch_resubscribe(g);
    mo_gw_front_settled(g);
}

void mo_gateway_share(struct mo_gateway *g, struct mo_lists_shared *lists,
                      void (*tell)(void *ctx), void *ctx)
{
    g->lists = lists;
    g->tell = tell;
    g->tell_ctx = ctx;
    g->lists_all = atomic_load(&lists->all) - 1; /* some were read before */
    for (size_t i = 0; i < g->n; i++)
        g->v[i]->shared = atomic_load(count_of(g->v[i])) - 1;
    for (size_t i = 0; i < MO_COUNT(g->announced); i++)
        g->announced[i] = atomic_load(&lists->announced[i]);
}

/* --- one child's lists --------------------------------------------------- */

static void note_read_failure(struct server_slot *s, const char *why)
{
    if (s->no != SLOT_NONE)
        mo_catalog_fail(s->g->cat, s->no, why);
}

static void put_list(struct gw_child *k, enum mo_cat_kind kind,
                     struct mo_json items,
                     const struct mo_definition_notes *notes)
{
    struct server_slot *s = k->slot;
    unsigned changed = 0;

    mo_catalog_note(s->g->cat, s->no, kind, notes);
    if (mo_catalog_put(s->g->cat, s->no, kind, items, &changed) < 0)
        k->bad = true;
    if ((k->announced & 1u << kind) && !(changed & 1u << kind)) {
        changed |= 1u << kind;
        announce_to_others(s, mo_gw_change_of(kind));
    }
    k->announced &= ~(1u << kind);
    for (enum mo_cat_kind i = 0; i < MO_CAT_KINDS; i++)
        if (changed & 1u << i)
            mo_gw_changed(s->g, mo_gw_change_of(i));
}

static bool is_modern_http(const struct gw_child *k)
{
    const struct mo_link *link = mo_conn_link(k->conn);

    return link && mo_link_is_http(link) && mo_conn_info(k->conn)->modern;
}

/* Leaves out tools whose arguments cannot be mirrored into unique headers. */
static struct mo_json keep_mirrored(struct mo_json items, struct mo_buf *b,
                                    struct mo_definition_notes *notes)
{
    mo_buf_putc(b, '[');
    mo_json_each (m, items) {
        if (!mo_mirror_keep(m.val)) {
            mo_definition_note_left_out(notes, MO_DEFINITION_TOOL, m.val,
                                        "its x-mcp-header is not valid");
            continue;
        }
        if (b->len > 1)
            mo_buf_putc(b, ',');
        mo_buf_span(b, mo_json_text(m.val));
    }
    if (mo_buf_putc(b, ']') < 0)
        return none;
    return (struct mo_json){b->p, b->len};
}

/* Stores a list in a form that strict clients accept; none: there is no such
 * list. */
static void store_list(struct gw_child *k, enum mo_cat_kind kind,
                       struct mo_json items)
{
    static const enum mo_definition_kind kinds[MO_CAT_KINDS] = {
        [MO_CAT_TOOLS] = MO_DEFINITION_TOOL,
        [MO_CAT_RESOURCES] = MO_DEFINITION_RESOURCE,
        [MO_CAT_TEMPLATES] = MO_DEFINITION_TEMPLATE,
        [MO_CAT_PROMPTS] = MO_DEFINITION_PROMPT,
        [MO_CAT_SKILLS] = MO_DEFINITION_SKILL,
    };
    mo_autobuf struct mo_buf kept = {.max = MO_PAGES_BYTES_MAX + 2};
    mo_autobuf struct mo_buf mended = {.max = 2 * MO_PAGES_BYTES_MAX};
    struct mo_definition_notes notes = {.nmended = 0};
    bool any = items.p != NULL;

    if (k->slot->no == SLOT_NONE)
        return;
    if (any && kind == MO_CAT_TOOLS && is_modern_http(k))
        items = keep_mirrored(items, &kept, &notes);
    if (items.p)
        items = mo_definition_mend(kinds[kind], items, &mended, &notes);
    if (any && !items.p)
        k->bad = true; /* out of memory */
    else
        put_list(k, kind, items, &notes);
}

static void finish_reading(struct gw_child *k)
{
    struct server_slot *s = k->slot;
    struct mo_gateway *g = s->g;

    if (k->busy)
        return;
    if (!k->bad && s->no != SLOT_NONE) {
        const struct mo_conn_info *i = mo_conn_info(k->conn);

        s->read_ms = mo_now_ns() / MO_MS;
        mo_catalog_fail(g->cat, s->no, NULL);
        if (mo_catalog_done(g->cat, s->no, i->capabilities, i->server))
            tell_others(s);
        mo_gw_watch_resubscribe(g);
    }
    if (k->held) {
        k->held = false;
        mo_child_release(k->child);
    }
    mo_forward_tools_listed(k);
    mo_gw_front_settled(g);
}

static void read_list(struct gw_child *k, enum mo_cat_kind kind);

/* A server without the method has no such list. */
static bool is_method_absent(const struct mo_reply *r)
{
    return r->error.p && r->code == MO_RPC_METHOD_NOT_FOUND;
}

/* Why a list was not given, in the server's own words if it has any. */
static void describe_failure(enum mo_cat_kind kind, const struct mo_reply *r,
                             struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = ERROR_TEXT_MAX};

    if (r->err) {
        *e = *r->err;
        return;
    }
    (void)mo_json_str_buf(mo_json_get(r->error, "message"), &b);
    (void)mo_fail(e, MO_EPROTO, "%s: the server answers error %lld: %s",
                  mo_catalog_kinds[kind].method, (long long)r->code,
                  mo_buf_cstr(&b));
}

/* Without its tools a server is unavailable. Without another list it is not. */
static void note_list_failure(struct gw_child *k, enum mo_cat_kind kind,
                              const struct mo_err *why)
{
    struct server_slot *s = k->slot;

    if (kind == MO_CAT_TOOLS || !mo_child_conn(k->child)) {
        k->bad = true;
        note_read_failure(s, why->msg);
    } else if (s->no != SLOT_NONE) {
        mo_catalog_fail_list(s->g->cat, s->no, kind, why->msg);
    }
}

static void on_list(void *ctx, struct mo_json items, const struct mo_reply *r)
{
    struct reading *rd = ctx;
    struct gw_child *k = rd->child;
    enum mo_cat_kind kind = (enum mo_cat_kind)(rd - k->lists);
    unsigned bit = 1u << kind;
    struct mo_err why;

    rd->pages = NULL;
    k->busy &= ~bit;
    if (items.p || is_method_absent(r)) {
        store_list(k, kind, items);
    } else {
        describe_failure(kind, r, &why);
        mo_loop_blank(k->slot->g->loop, &why);
        note_list_failure(k, kind, &why);
    }
    if ((k->again & bit) && !k->bad) {
        k->again &= ~bit;
        read_list(k, kind);
    }
    finish_reading(k);
}

static bool is_of_person(const struct server_slot *s)
{
    return mo_upstream_server(s->up)->per_person;
}

/* True if the server has such a list for everybody: the resources and skills
 * of a person are listed to nobody. */
static bool has_list(const struct gw_child *k, enum mo_cat_kind kind)
{
    const struct mo_cat_kind_info *i = &mo_catalog_kinds[kind];

    if (is_of_person(k->slot) &&
        (kind == MO_CAT_RESOURCES || kind == MO_CAT_SKILLS))
        return false;
    return mo_conn_can(k->conn, i->cap) &&
           (!i->ext || mo_conn_extension(k->conn, i->ext).p);
}

static void read_list(struct gw_child *k, enum mo_cat_kind kind)
{
    struct mo_pages_opts o = {
        .method = mo_catalog_kinds[kind].method,
        .key = mo_catalog_kinds[kind].list,
        .done = on_list,
        .ctx = &k->lists[kind],
    };
    struct mo_err e;

    if (!has_list(k, kind)) {
        store_list(k, kind, none);
        return;
    }
    if (mo_pages_start(k->conn, &o, &k->lists[kind].pages, &e) < 0) {
        note_list_failure(k, kind, &e);
        return;
    }
    k->busy |= 1u << kind;
}

void mo_catalog_refresh_child(struct gw_child *k, unsigned kinds)
{
    if (!mo_child_conn(k->child))
        return;
    if (!k->busy)
        k->bad = false;
    for (unsigned i = 0; i < MO_CAT_KINDS; i++) {
        unsigned bit = 1u << i;

        if (!(kinds & bit))
            continue;
        if (k->busy & bit)
            k->again |= bit;
        else
            read_list(k, (enum mo_cat_kind)i);
    }
    if (k->busy && !k->held) {
        k->held = true;
        mo_child_hold(k->child);
    }
    finish_reading(k);
}

/* Clients are told even if the list is unchanged: the server said so. */
void mo_catalog_refresh_list_changed(struct gw_child *k, enum mo_cat_kind kind)
{
    k->announced |= 1u << kind;
    mo_catalog_refresh_child(k, 1u << kind);
}

/* --- unknown lists ------------------------------------------------------- */

bool mo_catalog_refresh_reading(const struct server_slot *s)
{
    mo_list_each_entry (k, &s->children, const struct gw_child, node) {
        if (k->busy)
            return true;
    }
    return s->starting;
}

/* The child is open; on_open has started to read its lists. */
static void on_started(struct mo_child_request *w, struct mo_child *c,
                       const struct mo_err *why)
{
    struct server_slot *s = mo_container_of(w, struct server_slot, start);

    s->starting = false;
    if (c)
        mo_child_release(c);
    else
        note_read_failure(s, why->msg);
    mo_gw_front_settled(s->g);
}

bool mo_catalog_refresh_pending(const struct mo_gw_view *v)
{
    const struct mo_gateway *g = v->g;

    for (size_t i = 0; i < g->n; i++) {
        const struct server_slot *s = g->v[i];

        if (!mo_catalog_known(g->cat, s->no) && mo_gw_shows(v, s) &&
            mo_catalog_refresh_reading(s))
            return true;
    }
    return false;
}

static bool is_installing(const struct server_slot *s)
{
    struct mo_upstream_status st;

    mo_upstream_status(s->up, &st);
    return st.state == MO_UPSTREAM_INSTALLING;
}

/* Time in ms that a list request still waits for it; 0: known, or late. */
static uint64_t wait_for_slot(const struct server_slot *s)
{
    const struct mo_catalog *cat = s->g->cat;
    uint64_t waited = mo_now_ns() / MO_MS - s->asked_ms, most = 0;

    if (mo_catalog_known(cat, s->no) || !mo_catalog_refresh_reading(s))
        return 0;
    if (!s->asked_ms)
        return s->g->o.list_ms;
    most = mo_catalog_was_late(cat, s->no) ? GW_LIST_AGAIN_MS : s->g->o.list_ms;
    if (waited >= most && waited < GW_LIST_INSTALL_MS && is_installing(s))
        most = GW_LIST_INSTALL_MS;
    return waited < most ? most - waited : 0;
}

uint64_t mo_catalog_refresh_wait(const struct mo_gw_view *v)
{
    const struct mo_gateway *g = v->g;
    uint64_t most = 0;

    for (size_t i = 0; i < g->n; i++) {
        uint64_t ms = mo_gw_shows(v, g->v[i]) ? wait_for_slot(g->v[i]) : 0;

        most = ms > most ? ms : most;
    }
    return most;
}

void mo_catalog_refresh_put_awaited(const struct mo_gw_view *v,
                                    struct mo_buf *out)
{
    const struct mo_gateway *g = v->g;

    for (size_t i = 0; i < g->n; i++) {
        const struct server_slot *s = g->v[i];

        if (mo_gw_shows(v, s) && wait_for_slot(s))
            mo_buf_printf(out, "%s%s%s", out->len ? ", " : "",
                          mo_upstream_server(s->up)->name,
                          is_installing(s) ? " (installing)" : "");
    }
}

void mo_catalog_refresh_note_late(struct mo_gateway *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct server_slot *s = g->v[i];
        bool installing = false;

        if (mo_catalog_known(g->cat, s->no) || !mo_catalog_refresh_reading(s) ||
            wait_for_slot(s))
            continue;
        installing = is_installing(s);
        note_read_failure(s, installing
                                 ? "it is being installed; its lists follow"
                                 : "it has not answered yet; its lists follow "
                                   "when it does");
        if (!installing)
            mo_catalog_note_late(g->cat, s->no);
    }
}

/* Asks an open child again whose lists could not be read. key: of the person,
 * whose child it must be; or empty. */
static bool reread_open_child(struct server_slot *s, struct mo_span key)
{
    mo_list_each_entry (k, &s->children, struct gw_child, node) {
        if (key.n && !mo_span_eq(mo_child_who(k->child), key))
            continue;
        mo_catalog_refresh_child(k, LISTS_ALL);
        return true;
    }
    return false;
}

/* True if the person is connected; notes why there are no lists otherwise. */
static bool may_list(struct server_slot *s, struct mo_span person)
{
    const struct mo_upstream_opts *o = &s->g->o.up;
    mo_autobuf struct mo_buf address = {.max = ERROR_TEXT_MAX};

    if (!o->connected ||
        o->connected(o->ctx, mo_upstream_server(s->up)->name, person, &address))
        return true;
    if (!mo_catalog_known(s->g->cat, s->no))
        note_read_failure(s, "nobody has connected to it yet");
    return false;
}

void mo_catalog_refresh_slot(struct server_slot *s, struct mo_span who,
                             struct mo_span person, struct mo_span caps)
{
    char key[MO_GW_WHO_MAX] = "";

    if (mo_catalog_refresh_reading(s))
        return;
    if (is_of_person(s)) {
        if (!may_list(s, person))
            return;
        mo_rewrite_person(person, key);
        who = mo_span_cstr(key);
    }
    if (reread_open_child(s, mo_span_cstr(key)))
        return;
    s->starting = true;
    s->start = (struct mo_child_request){.ready = on_started};
    mo_upstream_request_child(s->up, who, caps, &s->start);
}

unsigned mo_catalog_refresh_due(const struct gw_child *k)
{
    const struct server_slot *s = k->slot;

    if (!is_of_person(s) || !mo_catalog_known(s->g->cat, s->no) ||
        mo_now_ns() / MO_MS - s->read_ms > GW_PERSON_LIST_MS)
        return LISTS_ALL;
    return 0;
}

void mo_catalog_refresh_running(struct mo_gateway *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct server_slot *s = g->v[i];
        struct gw_child *k = mo_list_first(&s->children, struct gw_child, node);

        if (k && !mo_catalog_refresh_reading(s) && !is_of_person(s))
            mo_catalog_refresh_child(k, 1u << MO_CAT_TOOLS);
    }
}

void mo_gateway_refresh(struct mo_gateway *g)
{
    for (size_t i = 0; i < g->n; i++)
        mo_catalog_refresh_slot(g->v[i], MO_SPAN("c:find"), mo_span(NULL, 0),
                                MO_SPAN("{}"));
}

bool mo_gateway_busy(const struct mo_gateway *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (mo_catalog_refresh_reading(g->v[i]))
            return true;
    return false;
}

bool mo_catalog_refresh_wanted(const struct mo_gw_view *v, struct mo_span who,
                               struct mo_span person, struct mo_span caps)
{
    struct mo_gateway *g = v->g;

    for (size_t i = 0; i < g->n; i++) {
        struct server_slot *s = g->v[i];

        if (mo_catalog_known(g->cat, s->no) || !mo_gw_shows(v, s))
            continue;
        if (!s->asked_ms)
            s->asked_ms = mo_now_ns() / MO_MS;
        mo_catalog_refresh_slot(s, who, person, caps);
    }
    return mo_catalog_refresh_pending(v);
}

void mo_catalog_refresh_stop(struct server_slot *s)
{
    if (!s->starting)
        return;
    s->starting = false;
    mo_upstream_cancel_request(&s->start);
}
