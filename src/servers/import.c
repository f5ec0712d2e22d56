#include "servers/import.h"

#include <stdio.h>
#include <strings.h>

#include "codec/json/jvalue.h"
#include "config/jsonc.h"
#include "config/keys.h"

#define TEXT_MAX   ((size_t)128 * 1024)
#define SERVER_MAX ((size_t)256 * 1024)
#define LEFT_MAX   ((size_t)400)
#define PAIRS_MAX  ((size_t)1000)

/* --- file format ---------------------------------------------------------- */

static const struct {
    const char *outer, *key, *format;
} formats[] = {
    {NULL, "mcpServers", "mcpServers"},
    {NULL, "mcps", "registry"},
    {"mcp", "servers", "VS Code settings"},
    {NULL, "mcp.servers", "VS Code settings"},
    {NULL, "servers", "VS Code"},
};

static struct mo_json find_servers(struct mo_json root, const char **format)
{
    for (size_t i = 0; i < MO_COUNT(formats); i++) {
        struct mo_json in =
            formats[i].outer ? mo_json_get(root, formats[i].outer) : root;
        struct mo_json v = mo_json_get(in, formats[i].key);

        *format = formats[i].format;
        if (mo_json_is(v, MO_JSON_OBJECT))
            return v;
    }
    return (struct mo_json){NULL, 0};
}

/* --- members of a server -------------------------------------------------- */

enum kind { TEXT, REF, LIST, MAP, FLAG, NOT, NUMBER, SKIP };

/* In the order in which they are written. Of several rows with the same `to`,
 * the first that is present counts. SKIP: known, but not used here. */
static const struct {
    const char *from, *to;
    enum kind kind;
} fields[] = {
    {"command", "command", TEXT},
    {"args", "args", LIST},
    {"url", "url", REF},
    {"serverUrl", "url", REF},
    {"httpUrl", "url", REF},
    {"image", "image", TEXT},
    {"containerImage", "image", TEXT},
    {"cwd", "cwd", TEXT},
    {"env", "env", MAP},
    {"containerEnv", "env", MAP},
    {"headers", "headers", MAP},
    {"description", "description", TEXT},
    {"keywords", "keywords", LIST},
    {"capabilities", "keywords", LIST},
    {"toolPrefix", "toolPrefix", TEXT},
    {"containerMemory", "memoryMb", NUMBER},
    {"containerCpu", "cpus", NUMBER},
    {"disabled", "enabled", NOT},
    {"enabled", "enabled", FLAG},
    {"type", NULL, SKIP},
    {"transport", NULL, SKIP},
    {"transportType", NULL, SKIP},
    {"tools", NULL, SKIP}, /* asked from the server instead */
    {"gallery", NULL, SKIP},
    {"version", NULL, SKIP},
};

struct work {
    struct mo_import_text t;
    struct mo_jw w;
    struct mo_buf text; /* scratch buffer for one text */
    int rc;
};

static int no_memory(struct work *k)
{
    k->rc = MO_ENOMEM;
    return MO_ENOMEM;
}

static void refuse_member(struct work *k, const char *key, const char *what)
{
    (void)snprintf(k->t.s->cannot, sizeof(k->t.s->cannot), "'%s' %s", key,
                   what);
    k->rc = MO_EINVAL;
}

/* Numbers and booleans in place of a string are taken as text. */
static int plain_text(struct work *k, struct mo_json v, struct mo_span *out)
{
    enum mo_json_type t = mo_json_type(v);

    if (t == MO_JSON_STRING)
        return mo_json_str(v, k->t.a, out) < 0 ? no_memory(k) : 0;
    *out = mo_json_text(v);
    return t == MO_JSON_NUMBER || t == MO_JSON_BOOL ? 0 : MO_EINVAL;
}

/* Translates the text of a member into k->text. */
static int take_text(struct work *k, const char *key, struct mo_json v,
                     bool refs, struct mo_span *plain)
{
    int rc = plain_text(k, v, plain);

    if (rc == MO_EINVAL)
        refuse_member(k, key, "is not a text");
    if (rc < 0)
        return rc;
    mo_buf_reset(&k->text);
    k->t.refs = refs;
    rc = mo_import_text(&k->t, *plain, &k->text);
    if (rc == MO_ETOOBIG)
        refuse_member(k, key, "is too long");
    if (rc < 0)
        k->rc = rc;
    return rc;
}

static void put_text(struct work *k, const char *to, struct mo_json v,
                     bool refs)
{
    struct mo_span plain;

    if (take_text(k, to, v, refs, &plain) < 0)
        return;
    mo_jw_member(&k->w, to, mo_buf_view(&k->text));
}

static void put_list(struct work *k, const char *to, struct mo_json v)
{
    struct mo_span before = {NULL, 0};

    mo_jw_member_arr(&k->w, to);
    mo_json_each_while (at, v, k->rc == 0) {
        struct mo_span plain;

        if (take_text(k, to, at.val, false, &plain) < 0)
            break;
        if (mo_import_is_key_arg(before, plain))
            k->t.s->key_in_args = true;
        before = plain;
        mo_jw_str(&k->w, mo_buf_view(&k->text));
    }
    mo_jw_end(&k->w);
}

static bool is_secret(const struct mo_import_server *s, const char *name)
{
    const struct mo_import_secret *x = s->secrets;

    while (x && !(x->name && strcmp(x->name, name) == 0))
        x = x->next;
    return x;
}

/* Builds "server.VARIABLE", with a number appended if the name is taken.
 * Characters not allowed in a secret name become '_'. */
static void name_key(const struct mo_import_server *s, const char *name,
                     char *full, size_t cap)
{
    size_t n;

    (void)snprintf(full, cap, "%s.%.56s", s->name, name);
    for (char *p = full; *p; p++) {
        if (!mo_is_alpha(*p) && !mo_is_digit(*p) && !strchr("_-.", *p))
            *p = '_';
    }
    n = strlen(full);
    for (int i = 2; is_secret(s, full); i++)
        (void)snprintf(full + n, cap - n, "-%d", i);
}

/* Notes a key, and writes a reference in its place if keys go to the store. */
static int note_key(struct work *k, const char *name, struct mo_span value)
{
    struct mo_import_secret *x = mo_arena_new(k->t.a, struct mo_import_secret);
    char full[MO_KEY_NAME_MAX + 80];

    if (!x)
        return no_memory(k);
    name_key(k->t.s, name, full, sizeof(full));
    x->name = mo_arena_strndup(k->t.a, full, strlen(full));
    x->value = mo_arena_strndup(k->t.a, value.p, value.n);
    x->n = value.n;
    x->next = k->t.s->secrets;
    k->t.s->secrets = x;
    if (!x->name || !x->value)
        return no_memory(k);
    if (k->t.o->store) {
        mo_buf_reset(&k->text);
        mo_buf_printf(&k->text, "${secret:%s}", full);
    }
    return 0;
}

static void put_pair(struct work *k, const char *to, struct mo_json key,
                     struct mo_json v)
{
    struct mo_span name, plain;
    char *copy;

    if (mo_json_str(key, k->t.a, &name) < 0) {
        (void)no_memory(k);
        return;
    }
    copy = mo_arena_strndup(k->t.a, name.p, name.n);
    if (!copy) {
        (void)no_memory(k);
        return;
    }
    if (mo_json_is(v, MO_JSON_NULL)) /* null removes a variable in VS Code */
        return;
    if (take_text(k, to, v, true, &plain) < 0)
        return;
    if (mo_import_is_key(copy, plain) && note_key(k, copy, plain) < 0)
        return;
    mo_jw_key_span(&k->w, name);
    mo_jw_str(&k->w, mo_buf_view(&k->text));
}

static void put_map(struct work *k, const char *to, struct mo_json v)
{
    if (mo_json_len(v) == 0)
        return;
    if (mo_json_len(v) > PAIRS_MAX) {
        refuse_member(k, to, "has more than 1000 entries");
        return;
    }
    mo_jw_member_obj(&k->w, to);
    mo_json_each_while (at, v, k->rc == 0) {
        if (mo_jvalue_find(v, at.key).p == at.val.p) /* the last one counts */
            put_pair(k, to, at.key, at.val);
    }
    mo_jw_end(&k->w);
}

static void put_flag(struct work *k, const char *to, struct mo_json v,
                     bool not )
{
    bool on = true;

    if (mo_json_bool(v, &on) < 0 || on != not ) /* true is the default */
        return;
    mo_jw_member_bool(&k->w, to, false);
}

static void put_field(struct work *k, size_t i, struct mo_json v)
{
    static const enum mo_json_type wants[] = {
        [LIST] = MO_JSON_ARRAY,
        [MAP] = MO_JSON_OBJECT,
        [NUMBER] = MO_JSON_NUMBER,
        [SKIP] = MO_JSON_NONE,
    };
    enum kind kind = fields[i].kind;
    const char *to = fields[i].to;

    if (wants[kind] != MO_JSON_NONE && !mo_json_is(v, wants[kind])) {
        refuse_member(k, fields[i].from, "has a form that is not understood");
        return;
    }
    if (kind == TEXT || kind == REF)
        put_text(k, to, v, kind == REF);
    else if (kind == LIST)
        put_list(k, to, v);
    else if (kind == MAP)
        put_map(k, to, v);
    else if (kind == FLAG || kind == NOT)
        put_flag(k, to, v, kind == NOT);
    else if (kind == NUMBER) {
        mo_jw_member_raw(&k->w, to, mo_json_text(v));
    }
}

/* --- one server ---------------------------------------------------------- */

static void put_fields(struct work *k, struct mo_json v)
{
    const char *done = NULL; /* rows with the same `to` are adjacent */

    for (size_t i = 0; k->rc == 0 && i < MO_COUNT(fields); i++) {
        struct mo_json f = mo_json_get(v, fields[i].from);

        if (!f.p || mo_json_is(f, MO_JSON_NULL) || fields[i].kind == SKIP ||
            (done && strcmp(done, fields[i].to) == 0))
            continue;
        put_field(k, i, f);
        done = fields[i].to;
    }
}

/* Only HTTP+SSE must be named. Other transports follow from command, url or
 * image. */
static void put_transport(struct work *k, struct mo_json v)
{
    static const char *const names[] = {"type", "transport", "transportType"};
    static const char *const urls[] = {"url", "serverUrl"};
    bool sse = false, named = false;

    for (size_t i = 0; i < MO_COUNT(names); i++) {
        struct mo_json t = mo_json_get(v, names[i]);

        named = named || t.p;
        sse = sse || mo_json_str_eq(t, MO_SPAN("sse"));
    }
    for (size_t i = 0; !named && i < MO_COUNT(urls); i++) {
        struct mo_span text = mo_json_text(mo_json_get(v, urls[i]));

        sse = sse || mo_span_ends(text, MO_SPAN("/sse\""));
    }
    if (!sse)
        return;
    mo_jw_member_cstr(&k->w, "transport", "sse");
}

static bool is_known(struct mo_json key)
{
    for (size_t i = 0; i < MO_COUNT(fields); i++) {
        if (mo_json_str_eq(key, mo_span_cstr(fields[i].from)))
            return true;
    }
    return false;
}

static void note_left_out(struct work *k, struct mo_json v)
{
    struct mo_buf *b = &k->t.s->left_out;

    mo_json_each (m, v) {
        if (is_known(m.key) || m.key.n > 60 || b->len > LEFT_MAX / 2)
            continue;
        mo_buf_puts(b, b->len ? ", " : "");
        mo_buf_put(b, m.key.p + 1, m.key.n - 2);
    }
    if (mo_buf_err(b) == MO_ENOMEM)
        (void)no_memory(k);
}

/* The entry must have a command, a url or an image. */
static void check_kind(struct work *k, struct mo_json json)
{
    static const char *const kinds[] = {"command", "url", "image"};
    int n = 0;

    for (size_t i = 0; i < MO_COUNT(kinds); i++)
        n += mo_json_get(json, kinds[i]).p != NULL;
    if (n == 1)
        return;
    (void)snprintf(k->t.s->cannot, sizeof(k->t.s->cannot), "%s",
                   n ? "it has more than one of command, url and image"
                     : "it has neither command nor url nor image");
    k->rc = MO_EINVAL;
}

static int store_json(struct work *k, struct mo_span text)
{
    char *copy = mo_arena_strndup(k->t.a, text.p, text.n);
    struct mo_json_doc doc;

    if (!copy || mo_json_parse(mo_span(copy, text.n), 0, &doc, NULL) < 0)
        return no_memory(k);
    check_kind(k, doc.root);
    if (k->rc == 0)
        k->t.s->json = doc.root;
    return k->rc;
}

/* Returns MO_ENOMEM or 0; a refusal is in s->cannot. */
static int read_server(struct mo_arena *a, const struct mo_import_opts *o,
                       struct mo_import_server *s, struct mo_json v)
{
    mo_autowipe struct mo_buf out = {.max = SERVER_MAX};
    struct work k = {.t = {.a = a, .o = o, .s = s},
                     .text = {.max = TEXT_MAX},
                     .w = mo_jw_object(&out)};

    if (!mo_json_is(v, MO_JSON_OBJECT))
        refuse_member(&k, s->name, "is not an object");
    put_fields(&k, v);
    if (k.rc == 0)
        put_transport(&k, v);
    mo_jw_end(&k.w);
    if (k.rc == 0 && mo_buf_err(&out) == MO_ETOOBIG)
        refuse_member(&k, s->name, "is too long");
    if (k.rc == 0 && mo_buf_err(&out))
        k.rc = MO_ENOMEM;
    if (k.rc == 0)
        note_left_out(&k, v);
    if (k.rc == 0)
        (void)store_json(&k, mo_buf_view(&out));
    mo_buf_wipe(&k.text);
    return k.rc == MO_ENOMEM ? k.rc : 0;
}

/* --- names --------------------------------------------------------------- */

/* Our names have letters, digits, '-', '_' and '.'; anything else becomes
 * '-'. */
static int name_server(struct mo_arena *a, struct mo_json key,
                       struct mo_import_server *s)
{
    struct mo_span was;
    char *name;

    if (mo_json_str(key, a, &was) < 0)
        return MO_ENOMEM;
    name = mo_arena_strndup(a, was.p, mo_span_head(was, MO_KEY_NAME_MAX).n);
    if (!name)
        return MO_ENOMEM;
    for (char *p = name; *p; p++) {
        if (!mo_is_alpha(*p) && !mo_is_digit(*p) && !strchr("_-.", *p))
            *p = '-';
    }
    s->name = *name ? name : "server";
    s->was =
        mo_span_is(was, s->name) ? NULL : mo_arena_strndup(a, was.p, was.n);
    return mo_span_is(was, s->name) || s->was ? 0 : MO_ENOMEM;
}

static bool is_taken(const struct mo_import *im, const char *name)
{
    for (size_t i = 0; i < im->n; i++) {
        if (strcmp(im->v[i].name, name) == 0)
            return true;
    }
    return false;
}

/* --- all servers ---------------------------------------------------------- */

static int read_servers(struct mo_arena *a, const struct mo_import_opts *o,
                        struct mo_json servers, struct mo_import *im)
{
    int rc = 0;

    mo_json_each_while (at, servers, rc == 0) {
        struct mo_import_server *s = &im->v[im->n];

        mo_buf_init(&s->left_out, LEFT_MAX);
        rc = name_server(a, at.key, s);
        if (rc < 0)
            break;
        if (is_taken(im, s->name))
            (void)snprintf(s->cannot, sizeof(s->cannot),
                           "another server of the file has this name here");
        else
            rc = read_server(a, o, s, at.val);
        im->n++;
    }
    return rc;
}

static int read_doc(struct mo_arena *a, struct mo_json root,
                    const struct mo_import_opts *o, struct mo_import *im,
                    struct mo_err *e)
{
    struct mo_json servers = find_servers(root, &im->format);
    size_t n = mo_json_len(servers);

    if (!servers.p)
        return mo_fail(e, MO_EINVAL,
                       "it has no MCP servers that are understood: neither "
                       "\"mcpServers\" nor \"servers\" nor \"mcps\"");
    if (n > MO_IMPORT_SERVERS_MAX)
        return mo_fail(e, MO_ETOOBIG, "it has more than %d servers",
                       MO_IMPORT_SERVERS_MAX);
    im->v = mo_arena_zalloc(a, (n + 1) * sizeof(*im->v));
    if (!im->v || read_servers(a, o, servers, im) < 0)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    return 0;
}

int mo_import_read(struct mo_arena *a, struct mo_span text,
                   const struct mo_import_opts *o, struct mo_import *out,
                   struct mo_err *e)
{
    struct mo_json_doc doc = {.bad_at = 0};
    mo_autowipe struct mo_buf plain = {.max = MO_IMPORT_FILE_MAX};
    int rc;

    *out = (struct mo_import){.n = 0};
    rc = mo_jsonc_plain(text, &plain);
    if (rc < 0)
        rc = mo_fail(e, rc, "the file is too big, or memory too small");
    else
        rc = mo_json_parse(mo_buf_view(&plain), 0, &doc, e);
    if (rc == 0)
        rc = read_doc(a, doc.root, o, out, e);
    if (rc < 0)
        mo_import_wipe(out);
    return rc;
}

void mo_import_wipe(struct mo_import *im)
{
    for (size_t i = 0; i < im->n; i++) {
        struct mo_import_server *s = &im->v[i];

        for (struct mo_import_secret *x = s->secrets; x; x = x->next) {
            if (x->value)
                explicit_bzero(x->value, x->n);
        }
        mo_buf_fini(&s->left_out);
    }
    im->n = 0;
}
