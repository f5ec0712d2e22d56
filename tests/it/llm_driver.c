/* llm_driver - the real providers on a string: a JSON request a line on stdin,
 * what happened as JSON lines on stdout, {"end":CPU microseconds} after each.
 *
 *   {"op":"reply","provider":"claude","url":"...","key":"...","model":"...",
 *    "system":"...","tools":[{"name","description","schema"}],
 *    "entries":[...],"maxOutput":0,"idleMs":0,"cancelAfter":3,
 *    "cancelAtWait":true,"quiet":true}
 *   {"op":"models", provider..., "ms":1000}
 *   {"op":"local","ms":500,"places":[{"name","url"}]} */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "agent/llm/llm.h"
#include "codec/json/json.h"

#define TOOLS_MAX   64
#define ENTRIES_MAX 512
#define ARENA_MAX   ((size_t)256 * 1024 * 1024)

struct driver {
    struct mo_loop *l;
    struct mo_httpc *hc;
    struct mo_arena a;
    struct mo_buf out;
    struct mo_jw w;
    struct mo_llm_x *x;
    uint64_t deltas, cancel_after;
    bool quiet, cancel_at_wait, done, inside;
};

static struct mo_span str(struct driver *d, struct mo_json v, const char *key)
{
    struct mo_span s = {NULL, 0};

    (void)mo_json_str(mo_json_get(v, key), &d->a, &s);
    return s;
}

static const char *cstr(struct driver *d, struct mo_json v, const char *key)
{
    struct mo_span s = str(d, v, key);

    return s.p ? mo_arena_strndup(&d->a, s.p, s.n) : NULL;
}

static uint64_t num(struct mo_json v, const char *key)
{
    uint64_t n = 0;

    (void)mo_json_u64(mo_json_get(v, key), &n);
    return n;
}

/* --- one line out -------------------------------------------------------- */

static struct mo_jw *line(struct driver *d, const char *what)
{
    MO_BUG_ON(d->inside); /* a callback came from inside a call */
    mo_buf_reset(&d->out);
    mo_jw_init(&d->w, &d->out);
    mo_jw_obj(&d->w);
    mo_jw_key(&d->w, what);
    return &d->w;
}

static void say(struct driver *d)
{
    mo_jw_end(&d->w);
    (void)fwrite(d->out.p, 1, d->out.len, stdout);
    (void)putchar('\n');
}

static void put_str(struct mo_jw *w, const char *key, struct mo_span s)
{
    mo_jw_key(w, key);
    mo_jw_str(w, s);
}

static void put_failure(struct mo_jw *w, const struct mo_llm_failure *f)
{
    mo_jw_obj(w);
    mo_jw_key(w, "code");
    mo_jw_cstr(w, f->code);
    mo_jw_key(w, "err");
    mo_jw_i64(w, f->err.code);
    mo_jw_key(w, "msg");
    mo_jw_cstr(w, f->err.msg);
    mo_jw_key(w, "retryAfter");
    mo_jw_u64(w, f->retry_after_ms);
    mo_jw_end(w);
}

static void on_delta(struct driver *d, const char *what, struct mo_span s)
{
    d->deltas++;
    if (!d->quiet) {
        mo_jw_str(line(d, what), s);
        say(d);
    }
    if (d->cancel_after && d->deltas == d->cancel_after)
        mo_llm_cancel(d->x);
}

static void on_text(void *ctx, struct mo_span s)
{
    on_delta(ctx, "text", s);
}

static void on_thinking(void *ctx, struct mo_span s)
{
    on_delta(ctx, "thinking", s);
}

static void on_wait(void *ctx, unsigned attempt, unsigned ms,
                    const struct mo_llm_failure *f)
{
    struct driver *d = ctx;
    struct mo_jw *w = line(d, "wait");

    mo_jw_obj(w);
    mo_jw_key(w, "attempt");
    mo_jw_u64(w, attempt);
    mo_jw_key(w, "ms");
    mo_jw_u64(w, ms);
    mo_jw_key(w, "why");
    put_failure(w, f);
    mo_jw_end(w);
    say(d);
    if (d->cancel_at_wait)
        mo_llm_cancel(d->x);
}

static void put_calls(struct mo_jw *w, const struct mo_llm_reply *r)
{
    mo_jw_key(w, "calls");
    mo_jw_arr(w);
    for (size_t i = 0; i < r->ncalls; i++) {
        mo_jw_obj(w);
        put_str(w, "key", r->calls[i].key);
        put_str(w, "name", r->calls[i].name);
        mo_jw_key(w, "args");
        mo_jw_raw(w, r->calls[i].args);
        if (r->calls[i].bad.n)
            put_str(w, "bad", r->calls[i].bad);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void on_done(void *ctx, const struct mo_llm_reply *r,
                    const struct mo_llm_failure *f)
{
    struct driver *d = ctx;
    struct mo_jw *w = line(d, r ? "done" : "failed");

    MO_BUG_ON(d->done);
    if (r) {
        mo_jw_obj(w);
        mo_jw_key(w, "entry");
        mo_jw_raw(w, r->entry);
        put_str(w, "text", r->text);
        mo_jw_key(w, "stop");
        mo_jw_u64(w, r->stop);
        put_calls(w, r);
        mo_jw_key(w, "input");
        mo_jw_u64(w, r->usage.input);
        mo_jw_key(w, "output");
        mo_jw_u64(w, r->usage.output);
        mo_jw_end(w);
    } else {
        put_failure(w, f);
    }
    say(d);
    d->done = true;
}

static void on_models(void *ctx, const struct mo_llm_model *v, size_t n,
                      const struct mo_llm_failure *f)
{
    struct driver *d = ctx;
    struct mo_jw *w = line(d, f ? "failed" : "models");

    if (f)
        put_failure(w, f);
    else
        mo_jw_arr(w);
    for (size_t i = 0; i < n; i++) {
        mo_jw_obj(w);
        put_str(w, "id", v[i].id);
        put_str(w, "name", v[i].name);
        mo_jw_key(w, "context");
        mo_jw_u64(w, v[i].context);
        mo_jw_end(w);
    }
    if (!f)
        mo_jw_end(w);
    say(d);
    d->done = true;
}

static void on_local(void *ctx, const struct mo_llm_local *v, size_t n)
{
    struct driver *d = ctx;
    struct mo_jw *w = line(d, "local");

    mo_jw_arr(w);
    for (size_t i = 0; i < n; i++) {
        mo_jw_obj(w);
        mo_jw_key(w, "name");
        mo_jw_cstr(w, v[i].name);
        mo_jw_key(w, "url");
        mo_jw_cstr(w, v[i].base_url);
        mo_jw_key(w, "models");
        mo_jw_u64(w, v[i].models);
        mo_jw_end(w);
    }
    mo_jw_end(w);
    say(d);
    d->done = true;
}

/* --- one line in --------------------------------------------------------- */

static size_t read_tools(struct driver *d, struct mo_json list,
                         struct mo_llm_tool v[TOOLS_MAX])
{
    struct mo_json_iter it;
    struct mo_json k, t;
    size_t n = 0;

    mo_json_iter(&it, list);
    while (n < TOOLS_MAX && mo_json_next(&it, &k, &t)) {
        v[n].name = str(d, t, "name");
        v[n].description = str(d, t, "description");
        v[n++].schema = mo_json_text(mo_json_get(t, "schema"));
    }
    return n;
}

static int reply(struct driver *d, struct mo_llm *m, struct mo_json rq,
                 struct mo_err *e)
{
    static const struct mo_llm_cb cb = {on_text, on_thinking, on_wait, on_done};
    static struct mo_llm_tool tools[TOOLS_MAX];
    static struct mo_span entries[ENTRIES_MAX];
    struct mo_llm_request r = {.model = cstr(d, rq, "model"),
                               .system = str(d, rq, "system"),
                               .tools = tools,
                               .entries = entries};
    struct mo_json_iter it;
    struct mo_json k, v;
    int rc;

    r.blind = !mo_llm_sees(mo_llm_kind_of(m), mo_span_cstr(r.model));
    r.ntools = read_tools(d, mo_json_get(rq, "tools"), tools);
    mo_json_iter(&it, mo_json_get(rq, "entries"));
    while (r.nentries < ENTRIES_MAX && mo_json_next(&it, &k, &v))
        entries[r.nentries++] = mo_json_text(v);
    d->inside = true;
    rc = mo_llm_start(m, &r, &cb, d, &d->x, e);
    d->inside = false;
    return rc;
}

static int local(struct driver *d, struct mo_json rq, struct mo_err *e)
{
    struct mo_llm_local v[MO_LLM_LOCAL_MAX];
    struct mo_json list = mo_json_get(rq, "places"), k, p;
    struct mo_json_iter it;
    size_t n = 0;

    mo_json_iter(&it, list);
    while (n < MO_LLM_LOCAL_MAX && mo_json_next(&it, &k, &p)) {
        v[n].name = cstr(d, p, "name");
        v[n++].base_url = cstr(d, p, "url");
    }
    return mo_llm_find_local(d->l, d->hc, list.p ? v : NULL, n,
                             (unsigned)num(rq, "ms"), on_local, d, e);
}

static bool is_done(void *ctx)
{
    return ((struct driver *)ctx)->done;
}

static uint64_t cpu_us(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static int start(struct driver *d, struct mo_json rq, struct mo_llm **m,
                 struct mo_err *e)
{
    struct mo_llm_opts o = {.base_url = cstr(d, rq, "url"),
                            .key = str(d, rq, "key"),
                            .max_output = (unsigned)num(rq, "maxOutput"),
                            .idle_ms = (unsigned)num(rq, "idleMs")};
    struct mo_span op = str(d, rq, "op");
    int kind;

    if (mo_span_is(op, "local"))
        return local(d, rq, e);
    kind = mo_llm_kind(str(d, rq, "provider"));
    if (kind < 0)
        return mo_fail(e, MO_EINVAL, "no such provider");
    o.kind = (enum mo_llm_kind)kind;
    *m = mo_llm_new(d->l, d->hc, &o, e);
    if (!*m)
        return e->code;
    if (mo_span_is(op, "models"))
        return mo_llm_models(*m, (unsigned)num(rq, "ms"), on_models, d, e);
    return reply(d, *m, rq, e);
}

static void serve(struct driver *d, struct mo_span text)
{
    struct mo_json_doc doc;
    struct mo_llm *m = NULL;
    uint64_t began = cpu_us();
    struct mo_err e;

    d->done = false;
    d->deltas = 0;
    if (mo_json_parse(text, 0, &doc, &e) < 0)
        exit(3);
    d->quiet = d->cancel_at_wait = false;
    (void)mo_json_bool(mo_json_get(doc.root, "quiet"), &d->quiet);
    (void)mo_json_bool(mo_json_get(doc.root, "cancelAtWait"),
                       &d->cancel_at_wait);
    d->cancel_after = num(doc.root, "cancelAfter");
    if (start(d, doc.root, &m, &e) < 0) {
        struct mo_jw *w = line(d, "refused");

        mo_jw_cstr(w, e.msg);
        say(d);
    } else {
        if (!mo_loop_until(d->l, is_done, d, 120000))
            exit(5);
    }
    mo_llm_free(m);
    mo_arena_reset(&d->a);
    (void)printf("{\"end\":%llu,\"deltas\":%llu}\n",
                 (unsigned long long)(cpu_us() - began),
                 (unsigned long long)d->deltas);
    (void)fflush(stdout);
}

static void gone(void *ctx)
{
    *(bool *)ctx = true;
}

int main(void)
{
    struct mo_httpc_opts o = {.active = 0};
    struct driver d = {.quiet = false};
    char *text = NULL;
    size_t cap = 0;
    ssize_t n;
    bool closed = false;
    struct mo_err e;

    d.l = mo_loop_new(NULL, &e);
    d.hc = d.l ? mo_httpc_new(d.l, &o, &e) : NULL;
    if (!d.hc)
        return 3;
    mo_arena_init(&d.a, ARENA_MAX);
    mo_buf_init(&d.out, ARENA_MAX);
    for (n = getline(&text, &cap, stdin); n > 0;
         n = getline(&text, &cap, stdin))
        serve(&d, mo_span(text, (size_t)n));
    free(text);
    mo_httpc_close(d.hc, gone, &closed);
    mo_loop_run(d.l);
    mo_arena_fini(&d.a);
    mo_buf_fini(&d.out);
    mo_loop_free(d.l);
    return closed ? 0 : 4;
}
