/* conn_open.c - open a connection over a fresh link.
 *
 * A server is opened with server/discover (modern) or initialize (legacy). This
 * file decides which one to send, how to read the answer, and when to dial
 * again. The outcomes of a probe follow the specification's page on mixed
 * versions: on a byte stream silence and exit mean legacy, over HTTP they mean
 * that the server is down. */
#include "base/clock.h"
#include "mcp/client/conn_priv.h"

#define INSTALL_POLL_MS 500

static bool may_be_legacy(const struct mo_conn *c)
{
    return c->o.mode == MO_CONN_AUTO && c->o.pin == MO_MCP_UNKNOWN;
}

static void give_up(struct mo_conn *c, int code, const char *what)
{
    mo_conn_close(c, mo_error(code, "%s", what));
}

static void set_verdict(struct mo_conn *c, enum mo_conn_era era)
{
    if (c->o.mode == MO_CONN_AUTO)
        c->info.verdict = (struct mo_conn_verdict){era, mo_wall_ms()};
}

/* The server has described itself in `result`. */
static void finish_open(struct mo_conn *c, struct mo_json result)
{
    if (mo_conn_codec_keep_opened(c, result) < 0) {
        give_up(c, MO_ETOOBIG,
                c->modern ? "server/discover: the answer is too big"
                          : "initialize: the answer is too big");
        return;
    }
    if (c->modern)
        set_verdict(c, MO_ERA_MODERN);
    c->may_redial = false;
    mo_conn_move(c, C_OPEN);
    mo_link_opened(c->link, mo_mcp_version_text(c->speak));
    if (!c->modern)
        (void)mo_conn_notify(c, "notifications/initialized", mo_span(NULL, 0));
    c->o.cb->on_open(c->o.ctx, c);
}

/* --- installation -------------------------------------------------------- */

static bool is_installing(const struct mo_conn *c)
{
    return c->link && mo_link_is_installing(c->link);
}

static void note_installing(struct mo_conn *c)
{
    c->installing = is_installing(c);
    c->dialed_ms = mo_now_ns() / MO_MS;
}

uint64_t mo_conn_more_time(struct mo_conn *c, uint64_t usual_ms)
{
    bool was = c->installing;

    c->installing = is_installing(c);
    if (!was && !c->installing)
        return 0;
    if (!c->installing)
        return usual_ms;
    return mo_now_ns() / MO_MS - c->dialed_ms < c->o.install_ms
               ? INSTALL_POLL_MS
               : 0;
}

/* Dialling again would interrupt the installation and begin it anew. */
static bool give_up_installing(struct mo_conn *c, const struct mo_reply *r)
{
    if (!r->err || r->err->code != MO_ETIMEOUT || !c->installing)
        return false;
    mo_conn_close(c, mo_error(MO_ETIMEOUT,
                              "it was not installed within %llu s "
                              "(installTimeoutMs)",
                              (unsigned long long)c->o.install_ms / 1000));
    return true;
}

/* --- dialling ------------------------------------------------------------ */

static void dial_server(struct mo_conn *c)
{
    struct mo_err e;

    mo_conn_move(c, C_DIALING);
    c->dialing = true;
    if (c->o.dial(c->o.ctx, c, &e) == 0)
        return;
    c->dialing = false;
    mo_conn_close(c, &e);
}

bool mo_conn_lost_in_probe(struct mo_conn *c)
{
    bool again = c->state == C_REDIAL || c->may_redial;

    if (!again)
        return false;
    if (c->state == C_PROBING)
        set_verdict(c, MO_ERA_LEGACY);
    c->go_legacy = true;
    c->may_redial = false;
    mo_conn_call_drop_internal(c);
    dial_server(c);
    return true;
}

/* --- legacy -------------------------------------------------------------- */

static void describe_error(const struct mo_reply *r, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = 160};

    (void)mo_json_str_buf(mo_json_get(r->error, "message"), &b);
    (void)mo_fail(e, MO_EPROTO, "initialize: the server answers error %lld%s%s",
                  (long long)r->code, mo_buf_err(&b) ? "" : ": ",
                  mo_buf_cstr(&b));
    if (r->status)
        (void)mo_wrap(e, "HTTP status %d", r->status);
}

static void on_initialized(void *ctx, const struct mo_reply *r)
{
    struct mo_conn *c = ctx;
    enum mo_mcp_version v = MO_MCP_UNKNOWN;
    struct mo_json text = mo_json_get(r->result, "protocolVersion");
    struct mo_err e;

    if (give_up_installing(c, r))
        return;
    if (r->err || !r->result.p) {
        if (!r->err)
            describe_error(r, &e);
        mo_conn_close(c, r->err ? r->err : &e);
        return;
    }
    if (mo_json_is(text, MO_JSON_STRING))
        v = mo_mcp_version(mo_span(text.p + 1, text.n - 2));
    if (v == MO_MCP_UNKNOWN || mo_mcp_is_modern(v) ||
        (c->o.pin != MO_MCP_UNKNOWN && c->o.pin != v)) {
        mo_conn_close(c, mo_error(MO_EPROTO, "the server wants to speak %.*s",
                                  (int)(text.n > 40 ? 40 : text.n),
                                  text.p ? text.p : ""));
        return;
    }
    c->speak = v;
    finish_open(c, r->result);
}

/* Send a request of the handshake. A closed link reports itself. */
static void start_call(struct mo_conn *c, const char *method,
                       struct mo_span params, const struct mo_call_opts *o)
{
    struct mo_err e;

    if (!mo_conn_call_start(c, method, params, o, true, &e) &&
        e.code != MO_ECLOSED)
        mo_conn_close(c, &e);
}

static void initialize(struct mo_conn *c)
{
    struct mo_call_opts o = {
        .idle_ms = MO_CALL_FOREVER,
        .hard_ms = c->o.open_ms,
        .done = on_initialized,
        .ctx = c,
    };
    mo_autobuf struct mo_buf b = {.max = MO_CONN_TEXT_MAX};
    int rc;

    c->modern = false;
    c->speak = c->o.pin != MO_MCP_UNKNOWN ? c->o.pin : MO_MCP_2025_11_25;
    mo_conn_move(c, C_INIT);
    note_installing(c);
    rc = mo_conn_codec_initialize(c, &b, c->speak);
    if (rc < 0)
        mo_conn_close(c, mo_error(rc, "initialize"));
    else
        start_call(c, "initialize", mo_buf_view(&b), &o);
}

/* --- modern -------------------------------------------------------------- */

static bool lists_version(struct mo_json versions, enum mo_mcp_version v)
{
    struct mo_span want = mo_span_cstr(mo_mcp_version_text(v));

    mo_json_each (m, versions) {
        if (mo_json_str_eq(m.val, want))
            return true;
    }
    return false;
}

static bool lists_modern(struct mo_json versions)
{
    mo_json_each (m, versions) {
        if (mo_json_is(m.val, MO_JSON_STRING) &&
            mo_mcp_text_is_modern(mo_span(m.val.p + 1, m.val.n - 2)))
            return true;
    }
    return false;
}

static void discover(struct mo_conn *c);

/* The server answers but is not modern; the link still works. */
static void fall_back(struct mo_conn *c, const struct mo_reply *r,
                      const char *why_not)
{
    if (!may_be_legacy(c)) {
        if (r->status)
            mo_conn_close(c,
                          mo_error(r->status >= 500 ? MO_EUNAVAIL : MO_EPROTO,
                                   "%s (HTTP status %d)", why_not, r->status));
        else
            give_up(c, MO_EPROTO, why_not);
        return;
    }
    if (r->status < 500) /* else it may be modern, and ill at present */
        set_verdict(c, MO_ERA_LEGACY);
    c->go_legacy = true;
    initialize(c);
}

static void on_unsupported(struct mo_conn *c, const struct mo_reply *r,
                           struct mo_json supported)
{
    if (lists_version(supported, c->speak) && !c->retried) {
        c->retried = true;
        discover(c);
    } else if (lists_modern(supported)) {
        give_up(c, MO_EPROTO,
                "the server speaks only revisions of MCP that "
                "are newer than this program");
    } else {
        fall_back(c, r, "the server speaks no modern revision of MCP");
    }
}

static bool is_barred(const struct mo_reply *r)
{
    return r->status == 401 || r->status == 403;
}

/* Servers of the older era answer with a 400, a 404 or a 500, with or without
 * JSON, or with a page for people. */
static void on_no_answer(struct mo_conn *c, const struct mo_reply *r)
{
    bool http = mo_link_is_http(c->link);
    bool silent = !http && r->err->code == MO_ETIMEOUT;

    if (http && r->status && !is_barred(r)) {
        fall_back(c, r, "the server refuses server/discover");
    } else if (silent && may_be_legacy(c)) {
        set_verdict(c, MO_ERA_LEGACY);
        c->may_redial = false;
        mo_conn_move(c, C_REDIAL); /* the probe made this link unusable */
        mo_link_close(c->link, mo_error(MO_ECANCELED, "probe over"));
    } else {
        mo_conn_close(c, r->err);
    }
}

static void on_discovered(void *ctx, const struct mo_reply *r)
{
    struct mo_conn *c = ctx;
    struct mo_json versions = mo_json_get(r->result, "supportedVersions");
    struct mo_json data = mo_json_get(r->error, "data");
    struct mo_json supported = mo_json_get(data, "supported");

    if (c->state == C_CLOSING)
        return; /* closed meanwhile: the link may be gone */
    if (give_up_installing(c, r))
        return;
    if (r->err)
        on_no_answer(c, r);
    else if (r->error.p && is_barred(r))
        mo_conn_close(c, mo_error(MO_EPOLICY,
                                  "the server refuses access (HTTP status %d)",
                                  r->status));
    else if (r->code == MO_MCP_UNSUPPORTED_VERSION && mo_json_len(supported))
        on_unsupported(c, r, supported);
    else if (lists_version(versions, c->speak))
        finish_open(c, r->result);
    else
        fall_back(c, r, "the server does not know server/discover");
}

static void discover(struct mo_conn *c)
{
    struct mo_call_opts o = {
        .idle_ms = MO_CALL_FOREVER,
        .hard_ms = may_be_legacy(c) ? c->o.probe_ms : c->o.open_ms,
        .done = on_discovered,
        .ctx = c,
    };

    c->modern = true;
    c->speak = MO_MCP_2026_07_28;
    if (c->state != C_PROBING)
        mo_conn_move(c, C_PROBING);
    note_installing(c);
    c->may_redial = may_be_legacy(c) && !mo_link_is_http(c->link);
    start_call(c, "server/discover", mo_span(NULL, 0), &o);
}

/* --- choice of the era --------------------------------------------------- */

static bool known_legacy(const struct mo_conn *c)
{
    const struct mo_conn_verdict *v = &c->o.known;
    uint64_t now = mo_wall_ms();

    return v->era == MO_ERA_LEGACY && v->at_ms <= now &&
           now - v->at_ms < MO_CONN_VERDICT_MS;
}

void mo_conn_start(struct mo_conn *c)
{
    if (c->state == C_NEW) {
        bool pinned = c->o.pin != MO_MCP_UNKNOWN;

        c->info.verdict = c->o.known;
        c->go_legacy = pinned
                           ? !mo_mcp_is_modern(c->o.pin)
                           : c->o.mode == MO_CONN_LEGACY ||
                                 (c->o.mode == MO_CONN_AUTO && known_legacy(c));
        dial_server(c);
    } else if (c->go_legacy) {
        initialize(c);
    } else {
        discover(c);
    }
}
