#include "audit/audit_row.h"

#include "base/clock.h"
#include "codec/sha256.h"

#define CANDIDATES_MAX 3

void mo_audit_row_put_door(struct mo_jw *w, const struct mo_door *d)
{
    if (d->name == NULL)
        return;
    mo_jw_member_cstr(w, "door", d->name);
    mo_jw_member_bool(w, "byRequester", d->is_requester);
}

/* --- what a person or an attacker did ------------------------------------ */

void mo_audit_row_put(struct mo_buf *b, const struct mo_audit_row *r)
{
    struct mo_jw w = mo_jw_object(b);

    if (r->event)
        mo_jw_member(&w, r->event, r->subject);
    mo_jw_member_opt(&w, "name", r->name);
    mo_jw_member_opt(&w, "server", r->server);
    mo_jw_member_opt(&w, "session", r->session);
    mo_jw_member_opt(&w, "tool", r->tool);
    mo_jw_member_opt(&w, "call", r->call);
    mo_jw_member_opt(&w, "app", r->app);
    mo_jw_member_raw(&w, "args", r->args);
    mo_jw_member_opt(&w, "argsDigestBefore", mo_span_cstr(r->args_before));
    mo_jw_member_raw(&w, "plan", r->plan);
    mo_jw_member_raw(&w, "entry", r->entry);
    mo_jw_member_opt(&w, "digest", mo_span_cstr(r->digest));
    mo_jw_member_opt(&w, "action", mo_span_cstr(r->action));
    if (r->approved)
        mo_jw_member_bool(&w, "approved", *r->approved);
    mo_jw_member_opt(&w, "by", mo_span_cstr(r->by));
    mo_jw_member_opt(&w, "who", r->who);
    mo_jw_member_opt(&w, "decidedBy", mo_span_cstr(r->decided_by));
    if (r->door)
        mo_audit_row_put_door(&w, r->door);
    mo_jw_member_opt(&w, "outcome", mo_span_cstr(r->outcome));
    mo_jw_member_opt(&w, "reason", mo_span_cstr(r->reason));
    mo_jw_member_opt(&w, "door", mo_span_cstr(r->via));
    mo_jw_member_opt(&w, "peer", r->peer);
    mo_jw_member_opt(&w, "host", r->host);
    mo_jw_member_opt(&w, "program", r->program);
    mo_jw_member_opt(&w, "origin", r->origin);
    mo_jw_member_opt(&w, "path", r->path);
    mo_jw_member_raw(&w, "changed", r->changed);
    mo_jw_member_raw(&w, "waiting", r->waiting);
    mo_jw_member_opt(&w, "script", mo_span_cstr(r->script));
    if (r->line)
        mo_jw_member_u64(&w, "line", r->line);
    if (r->count)
        mo_jw_member_u64(&w, "count", r->count);
    if (r->result) {
        mo_jw_member_bool(&w, "isError", r->result->is_error);
        mo_jw_member_u64(&w, "ms", r->result->ms);
        mo_jw_member_raw(&w, "content", r->result->content);
    }
    mo_jw_end(&w);
}

struct mo_write mo_audit_row_write(struct mo_span row)
{
    return (struct mo_write){
        .kind = MO_WRITE_AUDIT, .at = mo_wall_ms(), .doc = row};
}

/* {"a":1} becomes {"owner":"...","a":1}. */
void mo_audit_row_put_owner(struct mo_buf *b, const char *owner,
                            struct mo_span row)
{
    mo_buf_puts(b, "{\"owner\":");
    mo_json_quote(b, mo_span_cstr(owner));
    if (row.n > 2)
        mo_buf_putc(b, ',');
    mo_buf_span(b, mo_span_skip(row, 1));
}

/* A row is one line. */
static void put_value(struct mo_jw *w, struct mo_json v)
{
    mo_autobuf struct mo_buf b = {.max = MO_STORE_DOC_MAX};

    if (mo_span_find(mo_json_text(v), '\n') < 0) {
        mo_jw_raw(w, mo_json_text(v));
        return;
    }
    if (mo_json_compact(v, &b) == 0)
        mo_jw_raw(w, mo_buf_view(&b));
    else
        mo_jw_null(w);
}

/* --- the gateway and its router ------------------------------------------ */

static void put_confidence(struct mo_jw *w, float sure)
{
    unsigned n = sure > 0 ? (unsigned)(sure * 1000 + 0.5f) : 0;
    char text[8] = "0.000";
    size_t len = sizeof("0.000") - 1;

    mo_jw_key(w, "confidence");
    text[0] = (char)('0' + (n < 1000 ? 0 : 1));
    for (size_t i = 4; n < 1000 && i > 1; i--, n /= 10)
        text[i] = (char)('0' + n % 10);
    while (len > 1 && (text[len - 1] == '0' || text[len - 1] == '.'))
        len--;
    mo_jw_raw(w, mo_span(text, len));
}

static void put_route(struct mo_jw *w, const struct mo_gw_case *k)
{
    if (!k->routed)
        return;
    mo_jw_member_obj(w, "route");
    mo_jw_member_opt(w, "words", k->words);
    put_confidence(w, k->sure);
    mo_jw_end(w);
}

static void put_args(struct mo_jw *w, const struct mo_gw_case *k,
                     struct mo_span args)
{
    mo_jw_member_opt(w, "argsDigest", mo_span_cstr(k->digest));
    mo_jw_member_u64(w, "argsBytes", k->args_bytes);
    if (k->before[0]) /* a person edited them */
        mo_jw_member_opt(w, "argsDigestBefore", mo_span_cstr(k->before));
    if (args.n) {
        mo_jw_key(w, "args");
        put_value(w, (struct mo_json){args.p, args.n});
    }
}

static void put_outcome(struct mo_jw *w, const struct mo_gw_case *k)
{
    static const char *const words[MO_GW_OUTCOMES] = {
        [MO_GW_OK] = "ok",
        [MO_GW_TOOL_ERROR] = "tool error",
        [MO_GW_ERROR] = "error",
        [MO_GW_LOST] = "unknown",
        [MO_GW_CANCELED] = "cancelled",
        [MO_GW_DENIED] = "denied",
    };

    mo_jw_member_opt(w, "outcome", mo_span_cstr(words[k->outcome]));
    mo_jw_member_u64(w, "ms", k->ms);
    mo_jw_member_u64(w, "bytes", k->bytes);
}

void mo_audit_row_call(struct mo_buf *b, enum mo_audit_step step,
                       const struct mo_gw_case *k, struct mo_span args,
                       const char *who)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "kind", step == MO_AUDIT_AGREED ? "agreed" : "call");
    mo_jw_member_opt(&w, "id", mo_span_cstr(k->id));
    mo_jw_member_opt(&w, "server", k->server);
    mo_jw_member_opt(&w, "tool", k->tool);
    mo_jw_member_opt(&w, "view", k->view);
    mo_jw_member_opt(&w, "who", k->who);
    mo_jw_member_opt(&w, "owner", k->owner);
    if (k->client.n) {
        mo_jw_key(&w, "client");
        put_value(&w, (struct mo_json){k->client.p, k->client.n});
    }
    mo_jw_member_opt(&w, "script", k->script);
    if (k->line)
        mo_jw_member_u64(&w, "line", k->line);
    put_route(&w, k);
    put_args(&w, k, args);
    mo_jw_member_opt(&w, "by", mo_span_cstr(k->by));
    mo_jw_member_opt(&w, "decidedBy", mo_span_cstr(who));
    mo_audit_row_put_door(&w, &k->door);
    mo_jw_member_opt(&w, "reason", mo_span_cstr(k->reason));
    if (k->id[0])
        mo_jw_member_u64(&w, "waitedMs", k->waited_ms);
    if (step == MO_AUDIT_DONE)
        put_outcome(&w, k);
    mo_jw_member_opt(&w, "traceparent", k->trace);
    mo_jw_end(&w);
}

void mo_audit_row_routing(struct mo_buf *b, const struct mo_gw_routing *r)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "kind", "route");
    mo_jw_member_opt(&w, "via", mo_span_cstr(r->by));
    mo_jw_member_opt(&w, "view", mo_span_cstr(r->view));
    mo_jw_member_opt(&w, "who", mo_span_cstr(r->who));
    mo_jw_member_opt(&w, "words", r->words);
    mo_jw_member_bool(&w, "acted", r->acted);
    if (!r->acted)
        mo_jw_member_opt(&w, "outcome", MO_SPAN("looked"));
    mo_jw_member_arr(&w, "candidates");
    for (size_t i = 0; i < r->n; i++) {
        mo_jw_obj(&w);
        mo_jw_member_opt(&w, "server", r->v[i].server);
        mo_jw_member_opt(&w, "tool", r->v[i].tool);
        put_confidence(&w, r->v[i].sure);
        mo_jw_end(&w);
    }
    mo_jw_end_all(&w);
}

/* --- connections of boxes ------------------------------------------------- */

void mo_audit_row_connection(struct mo_buf *b, const char *server,
                             const char *session, const struct mo_egress_row *r)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "kind", "connection");
    mo_jw_member_opt(&w, "server", mo_span_cstr(server));
    mo_jw_member_opt(&w, "session", mo_span_cstr(session));
    mo_jw_member_opt(&w, "host", mo_span_cstr(r->name));
    mo_jw_member_opt(&w, "address", mo_span_cstr(r->address));
    mo_jw_member_u64(&w, "port", r->port);
    mo_jw_member_opt(&w, "program", mo_span_cstr(r->program));
    mo_jw_member_opt(&w, "rule", mo_span_cstr(r->rule));
    mo_jw_member_cstr(&w, "outcome", r->allowed ? "ok" : "denied");
    mo_jw_member_opt(&w, "reason", mo_span_cstr(r->reason));
    mo_jw_member_u64(&w, "sent", r->sent);
    mo_jw_member_u64(&w, "received", r->received);
    mo_jw_member_u64(&w, "ms", r->ms);
    if (r->injected) {
        mo_jw_member_arr(&w, "injected");
        for (size_t i = 0; i < r->injected->n; i++)
            mo_jw_cstr(&w, r->injected->headers[i].name);
        mo_jw_end(&w);
    }
    if (r->uncounted)
        mo_jw_member_u64(&w, "more", r->uncounted);
    mo_jw_end(&w);
}

/* --- folders of the host in boxes ------------------------------------------
 */

void mo_audit_row_mounts(struct mo_buf *b, const struct mo_audit_mounts *m)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "kind", "mounts");
    mo_jw_member_opt(&w, "server", mo_span_cstr(m->server));
    mo_jw_member_opt(&w, "session", mo_span_cstr(m->session));
    mo_jw_member_arr(&w, "mounts");
    for (size_t i = 0; m->mounts && m->mounts[i]; i++)
        mo_jw_cstr(&w, m->mounts[i]);
    mo_jw_end(&w);
    mo_jw_member_opt(&w, "workspace", mo_span_cstr(m->workspace));
    mo_jw_member_cstr(&w, "outcome", m->reason ? "denied" : "ok");
    mo_jw_member_opt(&w, "reason", mo_span_cstr(m->reason));
    mo_jw_end(&w);
}

/* --- lookups ------------------------------------------------------------- */

static void put_hit(struct mo_jw *w, struct mo_json hit)
{
    static const char *const keys[] = {"server", "tool",    "confidence",
                                       "words",  "meaning", "reason"};

    mo_jw_obj(w);
    for (size_t i = 0; i < MO_COUNT(keys); i++)
        mo_jw_copy(w, hit, keys[i]);
    mo_jw_end(w);
}

static void put_hits(struct mo_jw *w, const char *key, struct mo_json list)
{
    size_t n = 0;

    mo_jw_member_arr(w, key);
    mo_json_each_while (at, list, n++ < CANDIDATES_MAX)
        put_hit(w, at.val);
    mo_jw_end(w);
}

bool mo_audit_row_lookup(struct mo_buf *b, const struct mo_audit_lookup *l)
{
    struct mo_json_doc doc;
    struct mo_jw w;

    if (mo_json_parse(l->answer, 0, &doc, NULL) < 0)
        return false;
    w = mo_jw_object(b);
    mo_jw_member_cstr(&w, "kind", "route");
    mo_jw_member_opt(&w, "via", mo_span_cstr(l->via));
    mo_jw_member_opt(&w, "who", l->who);
    mo_jw_member_opt(&w, "words", l->words);
    put_hits(&w, "candidates", mo_json_get(doc.root, "results"));
    put_hits(&w, "ruledOut", mo_json_get(doc.root, "ruledOut"));
    mo_jw_member_bool(&w, "acted", false);
    mo_jw_member_cstr(&w, "outcome", "looked");
    mo_jw_end(&w);
    return true;
}

/* --- copies for the file ------------------------------------------------- */

static void put_file_member(struct mo_jw *w, struct mo_json key,
                            struct mo_json val, bool whole)
{
    char sum[65];

    if (mo_json_str_eq(key, MO_SPAN("content"))) {
        mo_jw_member_u64(w, "contentBytes", val.n);
        return;
    }
    if (mo_json_str_eq(key, MO_SPAN("args"))) {
        mo_sha256_hex(mo_json_text(val), sum);
        mo_jw_member_opt(w, "argsDigest", mo_span_cstr(sum));
        mo_jw_member_u64(w, "argsBytes", val.n);
        if (!whole)
            return;
    }
    mo_jw_key_raw(w, key);
    put_value(w, val);
}

bool mo_audit_row_for_file(struct mo_buf *b, struct mo_span row, bool whole)
{
    struct mo_json_doc d;
    struct mo_jw w;

    if (mo_json_parse(row, 0, &d, NULL) < 0)
        return false;
    w = mo_jw_object(b);
    mo_json_each (it, d.root)
        put_file_member(&w, it.key, it.val, whole);
    mo_jw_end(&w);
    return true;
}
