/* read_skill.c - the tool read_skill: a file of a skill for the model.
 *
 * The file is read through the conversation's connection to the gateway, by its
 * exposed URI. Before and after that the skill is compared with its pin and the
 * bytes with the entry; a difference ends the call with an error, and nothing
 * of the file reaches the model.
 *
 * An answer that a model does not get in one piece (entry.h) ends with the
 * offset to go on at. */
#include "agent/chat/skills.h"

#include "agent/chat/calls.h"
#include "agent/chat/entry.h"
#include "agent/chat/event.h"
#include "agent/chat/load_tools.h"
#include "agent/chat/tools_off.h"
#include "codec/text/utf8.h"
#include "gateway/catalog/catalog.h"
#include "gateway/gateway.h"
#include "gateway/inside.h"
#include "mcp/content.h"
#include "mcp/skill.h"
#include "mcp/skill_file.h"

#define TEXT_MAX  (2 * MO_SKILL_FILE_MAX)
#define NAMES_MAX ((size_t)64 * 1024)
#define READ_MS   60000u
/* Bytes of one answer, as a JSON string; the rest is for the block around it
 * and the note at its end. */
#define PIECE_MAX (MO_ENTRY_RESULT_MAX - 1024)

struct file_read { /* one request */
    struct call *call;
    struct mo_arena arena;
    struct mo_json entry;
    struct mo_span skill, server; /* names */
    struct mo_span own, exposed;  /* URIs of the file */
    bool is_manifest;
};

static void file_read_free(struct file_read *f)
{
    mo_arena_fini(&f->arena);
    mo_free(f);
}

bool mo_read_skill_is_call(const struct call *k)
{
    return k->tool && k->tool->source == SOURCE_ROUTER &&
           mo_span_is(k->tool->def.name, SKILL_TOOL);
}

/* --- pieces -------------------------------------------------------------- */

/* How much of a text fits into one answer: whole lines, if they are not too
 * long. */
static size_t piece_of(struct mo_span text)
{
    size_t n = mo_utf8_cut(text, PIECE_MAX), line = 0;

    for (;;) {
        mo_autobuf struct mo_buf b = {.max = 8 * PIECE_MAX};

        if (mo_json_quote(&b, mo_span_head(text, n)) < 0)
            return mo_utf8_cut(text, PIECE_MAX / 8);
        if (b.len <= PIECE_MAX)
            break;
        n = mo_utf8_cut(text, n * PIECE_MAX / b.len);
    }
    if (n == text.n)
        return n;
    for (line = n; line > n / 2; line--)
        if (text.p[line - 1] == '\n')
            return line;
    return n;
}

static void put_text(struct call *k, struct mo_span text)
{
    mo_buf_reset(&k->content);
    mo_content_put_text(&k->content, text);
    mo_chat_call_outcome(k, MO_CALL_DONE);
}

/* Ends the call with the text from the offset that its arguments name. */
static void end_with(struct call *k, struct mo_span text)
{
    struct mo_json args = {k->args.p, k->args.len};
    mo_autobuf struct mo_buf b = {.max = MO_ENTRY_RESULT_MAX};
    struct mo_span rest;
    uint64_t from = 0;
    size_t n = 0;

    (void)mo_json_u64(mo_json_get(args, "offset"), &from);
    if (from > 0 && from >= text.n) {
        mo_chat_call_skip(k, "offset is behind the end of the answer");
        return;
    }
    while (from < text.n && mo_utf8_is_tail(text.p[from]))
        from++;
    rest = mo_span_skip(text, (size_t)from);
    n = piece_of(rest);
    if (from == 0 && n == text.n) {
        put_text(k, text);
        return;
    }
    (void)mo_buf_span(&b, mo_span_head(rest, n));
    (void)mo_buf_printf(&b, "\n[bytes %zu to %zu of %zu", (size_t)from,
                        (size_t)from + n, text.n);
    if (n < rest.n)
        (void)mo_buf_printf(&b, "; the rest: the same call with offset %zu",
                            (size_t)from + n);
    (void)mo_buf_puts(&b, "]");
    put_text(k, mo_buf_view(&b));
}

/* --- texts --------------------------------------------------------------- */

/* The path of a listed file below the skill; empty: it is not below. */
static struct mo_span path_of(struct mo_json entry, struct mo_json file,
                              struct mo_buf *b)
{
    mo_autobuf struct mo_buf self = {.max = NAMES_MAX};
    struct mo_span root;

    mo_buf_reset(b);
    if (mo_json_str_buf(mo_json_get(entry, "uri"), &self) < 0 ||
        mo_json_str_buf(mo_json_get(file, "uri"), b) < 0)
        return mo_span(NULL, 0);
    root = mo_skill_root(mo_buf_view(&self));
    return mo_skill_has(root, mo_buf_view(b))
               ? mo_span_skip(mo_buf_view(b), root.n + 1)
               : mo_span(NULL, 0);
}

/* Files below dir ("" : all), one a line; returns how many. */
static size_t put_files(struct mo_buf *out, struct mo_json entry,
                        struct mo_span dir)
{
    mo_autobuf struct mo_buf b = {.max = NAMES_MAX};
    size_t n = 0;

    mo_json_each (m, mo_json_get(entry, "resources")) {
        struct mo_span path = path_of(entry, m.val, &b);

        if (!path.n || mo_span_is(path, "SKILL.md") ||
            (dir.n && !mo_skill_has(dir, path)))
            continue;
        (void)mo_buf_printf(out, "- %.*s\n", (int)path.n, path.p);
        n++;
    }
    return n;
}

static void end_with_list(struct call *k)
{
    const struct skills *all = k->chat->skills;
    mo_autobuf struct mo_buf b = {.max = TEXT_MAX};

    for (size_t i = 0; all && i < all->n; i++) {
        const struct skill *s = &all->v[i];

        if (!mo_skill_is_offered(k->chat, s))
            continue;
        (void)mo_buf_puts(&b, "- ");
        mo_skill_put_name(&b, s);
        (void)mo_buf_printf(&b, " (server %.*s): %.*s\n",
                            (int)s->pin.def.server.n, s->pin.def.server.p,
                            (int)s->pin.def.description.n,
                            s->pin.def.description.p);
    }
    end_with(k, b.len ? mo_buf_view(&b) : MO_SPAN("There is no skill."));
}

/* --- the answer ---------------------------------------------------------- */

static void end_with_file(struct file_read *f, struct mo_span bytes)
{
    mo_autobuf struct mo_buf b = {.max = TEXT_MAX};
    size_t at;

    if (!mo_utf8_valid(bytes)) {
        (void)mo_buf_printf(&b, "%.*s is a binary file of %zu bytes.",
                            (int)f->own.n, f->own.p, bytes.n);
        end_with(f->call, mo_buf_view(&b));
        return;
    }
    (void)mo_buf_span(&b, bytes);
    at = b.len;
    if (f->is_manifest) {
        (void)mo_buf_puts(&b, "\n\nOther files of this skill (read_skill with "
                              "path):\n");
        if (put_files(&b, f->entry, MO_SPAN("")) == 0)
            b.len = at;
    }
    end_with(f->call, mo_buf_view(&b));
}

static void on_file(void *ctx, const struct mo_reply *r)
{
    struct file_read *f = ctx;
    struct call *k = f->call;
    mo_autobuf struct mo_buf bytes = {.max = MO_SKILL_FILE_MAX};
    struct mo_err e;

    if (!r->result.p)
        mo_chat_call_no_result(k, r);
    else if (mo_skill_file_bytes(r->result, f->exposed, &bytes, &e) < 0 ||
             mo_skill_verify(f->entry, f->own, mo_buf_view(&bytes), &e) < 0)
        mo_chat_call_fail(k, MO_CALL_DONE,
                          "The file was refused, because it is not what the "
                          "server %.*s has listed: %s.",
                          (int)f->server.n, f->server.p, e.msg);
    else
        end_with_file(f, mo_buf_view(&bytes));
    file_read_free(f);
}

/* --- the request --------------------------------------------------------- */

static int copy_texts(struct file_read *f, const struct skill *s,
                      struct mo_span own)
{
    struct mo_span text = mo_span_dup(&f->arena, mo_json_text(s->entry));

    f->entry = (struct mo_json){text.p, text.n};
    f->skill = mo_span_dup(&f->arena, s->name);
    f->server = mo_span_dup(&f->arena, s->pin.def.server);
    f->own = mo_span_dup(&f->arena, own);
    f->is_manifest = mo_span_eq(own, s->pin.def.name);
    return text.p && f->skill.p && f->server.p && f->own.p ? 0 : MO_ENOMEM;
}

/* The URI under which the gateway has the file. */
static int expose(struct file_read *f)
{
    const struct mo_gateway *g = f->call->chat->agent->o.servers.gateway;
    mo_autobuf struct mo_buf b = {.max = NAMES_MAX};
    int rc = mo_catalog_expose(mo_gateway_catalog(g),
                               (unsigned)mo_gateway_server(g, f->server),
                               f->own, &b);

    if (rc < 0)
        return rc;
    f->exposed = mo_span_dup(&f->arena, mo_buf_view(&b));
    return f->exposed.p ? 0 : MO_ENOMEM;
}

static void request_file(struct call *k, const struct skill *s,
                         struct mo_span own)
{
    struct mo_conn *conn = mo_gateway_client_conn(k->chat);
    struct file_read *f = mo_new(struct file_read);
    mo_autobuf struct mo_buf params = {.max = NAMES_MAX};
    struct mo_call_opts o = {.hard_ms = READ_MS, .done = on_file, .ctx = f};
    struct mo_jw w;

    if (f == NULL) {
        mo_chat_call_skip(k, "out of memory");
        return;
    }
    mo_arena_init(&f->arena, SKILLS_BYTES_MAX);
    f->call = k;
    if (conn == NULL || copy_texts(f, s, own) < 0 || expose(f) < 0) {
        file_read_free(f);
        mo_chat_call_skip(k, "the server of the skill cannot be reached");
        return;
    }
    o.name = f->exposed;
    w = mo_jw_object(&params);
    mo_jw_member(&w, "uri", f->exposed);
    mo_jw_end(&w);
    if (!mo_chat_call_request(k, conn, "resources/read", &params, &o))
        file_read_free(f);
}

/* --- arguments ----------------------------------------------------------- */

/* By "name", "server/name" or its URI. */
static bool is_named(const struct skill *s, struct mo_span name)
{
    struct mo_span server = s->pin.def.server;

    return mo_span_eq(name, s->name) || mo_span_eq(name, s->pin.name) ||
           (name.n == server.n + 1 + s->name.n &&
            mo_span_starts(name, server) && name.p[server.n] == '/' &&
            mo_span_ends(name, s->name));
}

/* NULL: the call was ended. */
static const struct skill *find_skill(struct call *k, struct mo_span name)
{
    const struct skills *all = k->chat->skills;
    const struct skill *found = NULL;

    for (size_t i = 0; all && i < all->n; i++) {
        if (!is_named(&all->v[i], name))
            continue;
        if (found) {
            mo_chat_call_skip(k, "several servers have a skill of that name; "
                                 "name it as SERVER/NAME");
            return NULL;
        }
        found = &all->v[i];
    }
    if (found == NULL)
        mo_chat_call_skip(k, "there is no skill of that name; call " SKILL_TOOL
                             " without arguments for a list");
    return found;
}

/* True if the server still lists the skill as the conversation has it, and a
 * person has agreed to that. */
static bool is_current(const struct call *k, const struct skill *s)
{
    const struct mo_gateway *g = k->chat->agent->o.servers.gateway;
    const struct mo_cat_item *it =
        mo_catalog_find(mo_gateway_catalog(g), MO_CAT_SKILLS, s->pin.name);

    return it && mo_span_eq(mo_json_text(it->item), mo_json_text(s->entry)) &&
           mo_policy_tool_is_pinned(k->chat->agent->o.policy, &s->pin, NULL);
}

/* Tells members, and has the skills compared with their pins again. */
static void hold_back(struct call *k, const struct skill *s)
{
    mo_autobuf struct mo_buf b = {.max = NAMES_MAX};

    mo_skill_put_trouble(&b, s);
    mo_chat_event_message(k->chat, NULL, mo_buf_cstr(&b));
    k->chat->stale = true;
    mo_chat_call_skip(k, "its server has changed this skill, and it is not "
                         "used until a person has accepted that");
}

static bool may_use(struct call *k, const struct skill *s)
{
    if (!s->verifiable)
        mo_chat_call_skip(k, "the server gives no digests of the skill's "
                             "files, so they cannot be verified");
    else if (mo_tools_off_has(k->chat, &s->pin))
        mo_chat_call_skip(k, "the person has switched this skill off in this "
                             "conversation");
    else if (s->before.len > 0 || !is_current(k, s))
        hold_back(k, s);
    else
        return true;
    return false;
}

static void read_path(struct call *k, const struct skill *s,
                      struct mo_span path)
{
    mo_autobuf struct mo_buf uri = {.max = NAMES_MAX};
    mo_autobuf struct mo_buf list = {.max = TEXT_MAX};

    while (path.n && path.p[path.n - 1] == '/')
        path.n--;
    (void)mo_buf_span(&uri, mo_skill_root(s->pin.def.name));
    (void)mo_buf_putc(&uri, '/');
    if (mo_buf_span(&uri, path.n ? path : MO_SPAN("SKILL.md")) < 0)
        mo_chat_call_skip(k, "the path is too long");
    else if (mo_skill_listed(s->entry, mo_buf_view(&uri)).p)
        request_file(k, s, mo_buf_view(&uri));
    else if (put_files(&list, s->entry, path) > 0)
        end_with(k, mo_buf_view(&list));
    else
        mo_chat_call_skip(k, "the skill has no such file; read it without path "
                             "for the names of its files");
}

void mo_read_skill_run(struct call *k)
{
    mo_autoarena struct mo_arena a = {.cap = NAMES_MAX};
    struct mo_json args = {k->args.p, k->args.len};
    struct mo_span name = MO_SPAN(""), path = MO_SPAN("");
    struct mo_json skill = mo_json_get(args, "skill");
    struct mo_json file = mo_json_get(args, "path");
    const struct skill *s = NULL;

    if ((mo_json_is(skill, MO_JSON_STRING) &&
         mo_json_str(skill, &a, &name) < 0) ||
        (mo_json_is(file, MO_JSON_STRING) &&
         mo_json_str(file, &a, &path) < 0)) {
        mo_chat_call_skip(k, "its arguments are too long");
        return;
    }
    if (name.n == 0) {
        end_with_list(k);
        return;
    }
    s = find_skill(k, name);
    if (s && may_use(k, s))
        read_path(k, s, path);
}
