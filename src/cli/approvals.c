/* approvals list, approve, reject, accept - decides calls that wait for a
 * person.
 *
 * Every process that holds calls has a socket in the state directory
 * (web/approvals_socket.h); these commands contact all of them, or, with --url,
 * the server at which the person has signed in by `login`. A decision
 * applies to exactly the call that was shown: approve prints the call and sends
 * its digest. */
#include <stdio.h>

#include "base/clock.h"
#include "cli/runtime_wait.h"
#include "codec/json/json.h"
#include "connect/remote.h"
#include "mcp/edit.h"
#include "web/approvals_socket.h"

#define CALL_MAX (MO_SESSION_ID_MAX + 40) /* "SESSION.CALL" */
#define URL_MAX_ (CALL_MAX + 32)

struct asking {
    struct mo_cmd_runtime m;
    struct mo_remote *remote; /* --url: that server instead of processes here */
    struct mo_buf answer;     /* of the current process */
    struct mo_buf out;        /* output */
    bool json, any;
    const char *id;            /* id to find */
    const char *server, *tool; /* tool to find */
    const char *what;          /* list that contains it */
    /* found: */
    char path[4096];
    struct mo_buf found; /* copied from the list */
};

/* --- asking every process ------------------------------------------------- */

static int ask(struct asking *a, const char *path, const char *method,
               const char *url, struct mo_span body, int *status,
               struct mo_err *e)
{
    mo_buf_reset(&a->answer);
    if (a->remote)
        return mo_remote_ask(a->remote, url, body, status, &a->answer, e);
    return mo_approvals_socket_ask(a->m.loop, path, method, url, body, status,
                                   &a->answer, e);
}

/* Also finds out whether the person is signed in there. */
static int open_remote(struct mo_cli *c, struct asking *a, const char *url)
{
    struct mo_err e;
    int status = 0;
    int rc = mo_remote_open(a->m.loop, a->m.cfg.now, url, &a->remote, &e);

    if (rc < 0)
        return mo_cli_error(c, MO_EXIT_USAGE, "%s", e.msg);
    rc = ask(a, NULL, "GET", "/api/approvals", mo_span(NULL, 0), &status, &e);
    if (rc < 0)
        return mo_cli_error(
            c, status == 401 ? MO_EXIT_SIGN_IN : MO_EXIT_UNAVAIL, "%s", e.msg);
    if (status != 200)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s answers %d",
                            mo_remote_url(a->remote), status);
    return 0;
}

static int begin_asking(struct mo_cli *c, struct asking *a)
{
    const char *url = mo_cli_get(c, "url");
    int rc;

    a->json = mo_cli_has(c, "json");
    mo_buf_init(&a->answer, MO_APPROVALS_SOCKET_BYTES);
    mo_buf_init(&a->out, MO_APPROVALS_SOCKET_BYTES);
    mo_buf_init(&a->found, MO_APPROVALS_SOCKET_BYTES);
    rc = mo_cmd_runtime_load(c, &a->m);
    return rc || !url ? rc : open_remote(c, a, url);
}

static void end_asking(struct asking *a)
{
    mo_remote_close(a->remote);
    mo_buf_fini(&a->answer);
    mo_buf_fini(&a->out);
    mo_buf_fini(&a->found);
    mo_cmd_runtime_close(&a->m);
}

#define autoasking MO_CLEANUP(end_asking)

/* Reads the list of one process; empty if the process is gone. */
static struct mo_json list_of(struct asking *a, const char *path,
                              struct mo_json_doc *d)
{
    struct mo_err e;
    int status = 0;

    *d = (struct mo_json_doc){.root = {NULL, 0}};
    if (ask(a, path, "GET", "/api/approvals", mo_span(NULL, 0), &status, &e) <
            0 ||
        status != 200 || mo_json_parse(mo_buf_view(&a->answer), 0, d, NULL) < 0)
        return (struct mo_json){NULL, 0};
    return d->root;
}

static int for_each_process(struct asking *a,
                            int (*fn)(void *ctx, const char *path),
                            struct mo_err *e)
{
    if (a->remote)
        return fn(a, "");
    return mo_approvals_socket_each(a->m.cfg.now->store.dir, fn, a, e);
}

/* --- list ---------------------------------------------------------------- */

static void put_line(struct mo_buf *b, const char *before, struct mo_json v)
{
    mo_cmd_put_member(b, before, v);
    if (v.p)
        mo_buf_putc(b, '\n');
}

/* The texts of a list in one line; nothing for an empty one. */
static void put_names(struct mo_buf *b, const char *before, struct mo_json list)
{
    const char *sep = before;

    mo_json_each (it, list) {
        mo_cmd_put_member(b, sep, it.val);
        sep = ", ";
    }
    if (sep != before)
        mo_buf_putc(b, '\n');
}

/* The persons who must approve it, where the rule names them. */
static void put_panel(struct mo_buf *b, struct mo_json v)
{
    uint64_t need = 0;

    if (mo_json_u64(mo_json_get(v, "approvals"), &need) < 0)
        return;
    put_names(b, "  waits for  ", mo_json_get(v, "approvers"));
    if (mo_json_flag(v, "fourEyes"))
        (void)mo_buf_printf(b, "  needs      %llu who did not ask for it\n",
                            (unsigned long long)need);
    put_names(b, "  approved   ", mo_json_get(v, "approvedBy"));
}

static void put_call(struct mo_buf *b, struct mo_json v)
{
    char until[MO_ISO8601_MAX];
    uint64_t at = 0;
    bool by_client = false;

    (void)mo_json_u64(mo_json_get(v, "expiresAt"), &at);
    (void)mo_json_bool(mo_json_get(v, "byClient"), &by_client);
    mo_wall_format(at, until);
    put_line(b, "", mo_json_get(v, "id"));
    put_line(b, "  server     ", mo_json_get(v, "server"));
    put_line(b, "  tool       ", mo_json_get(v, "tool"));
    put_line(b, "  view       ", mo_json_get(v, "view"));
    put_line(b, "  arguments  ", mo_json_get(v, "args"));
    put_line(b, "  request    ", mo_json_get(v, "request"));
    put_line(b, "  program    ", mo_json_get(v, "program"));
    put_line(b, "  session    ", mo_json_get(v, "session"));
    put_line(b, "  found for  ", mo_json_get(v, "words"));
    put_line(b, "  why asked  ", mo_json_get(v, "reason"));
    put_line(b, "  asked by   ", mo_json_get(v, "owner"));
    put_panel(b, v);
    put_line(b, "  client     ", mo_json_get(mo_json_get(v, "client"), "name"));
    (void)mo_buf_printf(b, "  until      %s%s\n", until,
                        by_client ? " (its client was asked)" : "");
}

static void put_changed(struct mo_buf *b, struct mo_json v)
{
    put_line(b, "changed by its server, not run until accepted: ",
             mo_json_get(v, "tool"));
    put_line(b, "  server     ", mo_json_get(v, "server"));
    put_line(b, "  was        ",
             mo_json_get(mo_json_get(v, "before"), "description"));
    put_line(b, "  is         ",
             mo_json_get(mo_json_get(v, "now"), "description"));
    put_line(b, "  digest     ", mo_json_get(v, "digest"));
}

static void put_all(struct asking *a, struct mo_json list,
                    void (*text)(struct mo_buf *b, struct mo_json v))
{
    mo_json_each (it, list) {
        if (a->json && a->any)
            (void)mo_buf_putc(&a->out, ',');
        if (a->json)
            (void)mo_buf_span(&a->out, mo_json_text(it.val));
        else
            text(&a->out, it.val);
        a->any = true;
    }
}

static int list_one(void *ctx, const char *path)
{
    struct asking *a = ctx;
    struct mo_json_doc d;
    struct mo_json root = list_of(a, path, &d);

    put_all(a, mo_json_get(root, "approvals"), put_call);
    put_all(a, mo_json_get(root, "changed"), put_changed);
    return 0;
}

int mo_run_approvals_list(struct mo_cli *c)
{
    autoasking struct asking a = {.any = false};
    struct mo_err e;
    int rc = begin_asking(c, &a);

    if (rc)
        return rc;
    if (a.json)
        (void)mo_buf_putc(&a.out, '[');
    if (for_each_process(&a, list_one, &e) < 0)
        return mo_cli_error(c, MO_EXIT_UNAVAIL, "%s", e.msg);
    if (a.json)
        (void)mo_buf_putc(&a.out, ']');
    else if (!a.any)
        (void)mo_buf_puts(&a.out, "no call waits for a person\n");
    return mo_cmd_print(c, &a.out);
}

/* --- approve and reject --------------------------------------------------- */

static bool is_call(const struct asking *a, struct mo_json v)
{
    if (a->id)
        return mo_json_str_eq(mo_json_get(v, "id"), mo_span_cstr(a->id));
    return mo_json_str_eq(mo_json_get(v, "server"), mo_span_cstr(a->server)) &&
           mo_json_str_eq(mo_json_get(v, "tool"), mo_span_cstr(a->tool));
}

static int find_one(void *ctx, const char *path)
{
    struct asking *a = ctx;
    struct mo_json_doc d;

    mo_json_each (it, mo_json_get(list_of(a, path, &d), a->what)) {
        if (!is_call(a, it.val))
            continue;
        (void)snprintf(a->path, sizeof(a->path), "%s", path);
        (void)mo_buf_span(&a->found, mo_json_text(it.val));
        return 1;
    }
    return 0;
}

/* Posts a decision about the call that was found, with its digest. */
static int post_decision(struct asking *a, struct mo_cli *c, const char *url,
                         struct mo_span body)
{
    struct mo_json_doc d;
    mo_autobuf struct mo_buf why = {.max = 4096};
    struct mo_err e;
    int status = 0;

    if (ask(a, a->path, "POST", url, body, &status, &e) < 0)
        return mo_cli_error(c, MO_EXIT_UNAVAIL, "%s", e.msg);
    if (status == 200)
        return MO_EXIT_OK;
    if (mo_json_parse(mo_buf_view(&a->answer), 0, &d, NULL) == 0)
        (void)mo_json_str_buf(mo_json_get(d.root, "detail"), &why);
    return mo_cli_error(c, MO_EXIT_FAIL, "%s",
                        why.len ? mo_buf_cstr(&why) : "it was refused");
}

/* Replaces the arguments; 0: they are an object. */
static int put_args(struct asking *a, struct mo_jw *w, const char *args)
{
    struct mo_json v = {a->found.p, a->found.len};
    struct mo_edit ed = {"args", mo_span_cstr(args)};
    struct mo_json_doc d;
    struct mo_buf now;

    if (mo_json_parse(ed.to, 0, &d, NULL) < 0 ||
        !mo_json_is(d.root, MO_JSON_OBJECT))
        return MO_EINVAL;
    mo_jw_member_raw(w, "args", mo_json_text(d.root));
    mo_buf_init(&now, MO_APPROVALS_SOCKET_BYTES);
    ed.to = mo_json_text(d.root);
    if (mo_edit(&now, v, &ed, 1) < 0) {
        mo_buf_fini(&now);
        return MO_ENOMEM;
    }
    mo_buf_fini(&a->found);
    a->found = now;
    return 0;
}

static int decide(struct asking *a, struct mo_cli *c, bool approved)
{
    struct mo_json v = {a->found.p, a->found.len};
    const char *reason = mo_cli_get(c, "reason");
    const char *args = mo_cli_get(c, "args");
    const char *remember = mo_cli_get(c, "remember");
    char url[URL_MAX_];
    mo_autobuf struct mo_buf b = {.max = MO_APPROVALS_SOCKET_BYTES};
    struct mo_jw w = mo_jw_object(&b);
    int rc = 0;

    (void)snprintf(url, sizeof(url), "/api/approvals/%s", a->id);
    mo_jw_member_bool(&w, "approved", approved);
    mo_jw_member_raw(&w, "digest", mo_json_text(mo_json_get(v, "digest")));
    if (reason)
        mo_jw_member_cstr(&w, "reason", reason);
    if (remember)
        mo_jw_member_cstr(&w, "remember", remember);
    if (args)
        rc = put_args(a, &w, args);
    mo_jw_end(&w);
    if (rc == MO_EINVAL)
        return mo_cli_error(c, MO_EXIT_USAGE, "--args needs a JSON object");
    if (rc < 0 || mo_buf_err(&b))
        return mo_cli_error(c, MO_EXIT_FAIL, "out of memory");
    return post_decision(a, c, url, mo_buf_view(&b));
}

static int print_decided(struct asking *a, struct mo_cli *c, const char *word)
{
    struct mo_json v = {a->found.p, a->found.len};
    mo_autobuf struct mo_buf b = {.max = MO_APPROVALS_SOCKET_BYTES};
    struct mo_json_doc d;
    uint64_t missing = 0;

    if (mo_json_parse(mo_buf_view(&a->answer), 0, &d, NULL) == 0)
        (void)mo_json_u64(mo_json_get(d.root, "missing"), &missing);
    (void)mo_buf_printf(&b, "%s ", word);
    if (missing)
        (void)mo_buf_printf(&b, "(%llu more must approve) ",
                            (unsigned long long)missing);
    put_call(&b, v);
    return mo_cli_print(c, &b);
}

static int run_decide(struct mo_cli *c, bool approved)
{
    autoasking struct asking a = {.id = c->args[0], .what = "approvals"};
    struct mo_err e;
    int rc = begin_asking(c, &a);

    if (rc)
        return rc;
    if (strlen(a.id) > CALL_MAX || for_each_process(&a, find_one, &e) <= 0 ||
        !a.found.len)
        return mo_cli_error(c, MO_EXIT_FAIL,
                            "no call %.64s waits for a decision (any more)",
                            a.id);
    rc = decide(&a, c, approved);
    if (rc == 0)
        rc = print_decided(&a, c, approved ? "approved" : "rejected");
    return rc;
}

int mo_run_approvals_approve(struct mo_cli *c)
{
    return run_decide(c, true);
}

int mo_run_approvals_reject(struct mo_cli *c)
{
    return run_decide(c, false);
}

/* --- accepting a changed tool -------------------------------------------- */

static int post_accept(struct asking *a, struct mo_cli *c)
{
    struct mo_json v = {a->found.p, a->found.len};
    mo_autobuf struct mo_buf b = {.max = (size_t)64 * 1024};
    struct mo_jw w = mo_jw_object(&b);

    mo_jw_member_cstr(&w, "server", a->server);
    mo_jw_member_cstr(&w, "tool", a->tool);
    mo_jw_member_raw(&w, "digest", mo_json_text(mo_json_get(v, "digest")));
    mo_jw_end(&w);
    return mo_buf_err(&b)
               ? mo_cli_error(c, MO_EXIT_FAIL, "out of memory")
               : post_decision(a, c, "/api/approvals/tools", mo_buf_view(&b));
}

struct accepting {
    struct asking *a;
    struct mo_cli *c;
    struct mo_buf digest; /* of the first match; others must have the same */
    int rc;               /* an exit code */
};

/* Accepts the tool in every process that holds it back. */
static int accept_one(void *ctx, const char *path)
{
    struct accepting *x = ctx;
    struct mo_json v, digest;

    mo_buf_reset(&x->a->found);
    if (find_one(x->a, path) == 0)
        return 0;
    v = (struct mo_json){x->a->found.p, x->a->found.len};
    digest = mo_json_get(v, "digest");
    if (x->digest.len == 0)
        (void)mo_buf_span(&x->digest, mo_json_text(digest));
    if (!mo_span_eq(mo_buf_view(&x->digest), mo_json_text(digest)))
        return 0;
    x->rc = post_accept(x->a, x->c);
    return x->rc ? 1 : 0;
}

int mo_run_approvals_accept(struct mo_cli *c)
{
    autoasking struct asking a = {
        .server = c->args[0], .tool = c->args[1], .what = "changed"};
    struct accepting all = {.a = &a, .c = c};
    mo_autobuf struct mo_buf b = {.max = MO_APPROVALS_SOCKET_BYTES};
    struct mo_err e;
    int rc = begin_asking(c, &a);

    if (rc)
        return rc;
    if (for_each_process(&a, find_one, &e) <= 0 || !a.found.len)
        return mo_cli_error(c, MO_EXIT_FAIL,
                            "%.64s of %.64s does not wait to be accepted",
                            a.tool, a.server);
    (void)mo_buf_puts(&b, "accepted as it is now\n");
    put_changed(&b, (struct mo_json){a.found.p, a.found.len});
    mo_buf_init(&all.digest, MO_APPROVALS_SOCKET_BYTES);
    (void)mo_approvals_socket_each(a.m.cfg.now->store.dir, accept_one, &all,
                                   &e);
    mo_buf_fini(&all.digest);
    return all.rc ? all.rc : mo_cli_print(c, &b);
}
