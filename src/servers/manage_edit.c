/* manage_edit.c - applies a request to the configuration file: turns its server
 * description into an entry, and stores the keys; see manage_priv.h.
 *
 * Member names of older orchestrators (containerImage and the like) are
 * accepted. A value of `env` or `headers` that is a key (by its name, its form,
 * or because the request says so) is replaced by ${secret:SERVER.NAME} and
 * listed for the secret store. */
#include <stdio.h>

#include "config/doc.h"
#include "config/reference.h"
#include "secrets/key.h"
#include "secrets/secrets.h"
#include "servers/import.h"
#include "servers/manage_priv.h"

#define NAME_BYTES 128

/* --- member names --------------------------------------------------------- */

static const char *const reserved[] = {"name",    "config", "test",
                                       "secrets", "dryRun", "replace"};

static const struct {
    const char *from, *to;
} renames[] = {
    {"containerImage", "image"},
    {"containerEnv", "env"},
    {"containerMemory", "memoryMb"},
    {"containerCpu", "cpus"},
};

/* True if the member belongs to the request, not to the server. */
static bool is_reserved(struct mo_span key)
{
    for (size_t i = 0; i < MO_COUNT(reserved); i++) {
        if (mo_span_is(key, reserved[i]))
            return true;
    }
    return false;
}

/* True if the values of this member may be keys. */
static bool has_keys(struct mo_span member)
{
    return mo_span_is(member, "env") || mo_span_is(member, "headers");
}

static struct mo_span translate_name(struct mo_span key)
{
    for (size_t i = 0; i < MO_COUNT(renames); i++) {
        if (mo_span_is(key, renames[i].from))
            return mo_span_cstr(renames[i].to);
    }
    return key;
}

/* --- keys ---------------------------------------------------------------- */

static bool is_named(struct mo_json list, struct mo_span name)
{
    mo_json_each (m, list) {
        if (mo_json_str_eq(m.val, name))
            return true;
    }
    return false;
}

static bool is_key(const struct mo_entry *x, struct mo_span name,
                   struct mo_span value)
{
    char text[NAME_BYTES];
    bool on = true;

    if (value.n == 0 || mo_reference_any(value))
        return false;
    if (mo_json_is(x->keep, MO_JSON_ARRAY))
        return is_named(x->keep, name);
    if (mo_json_bool(x->keep, &on) == 0 && !on)
        return false;
    (void)snprintf(text, sizeof(text), "%.*s",
                   (int)mo_span_head(name, sizeof(text) - 1).n, name.p);
    return mo_import_is_key(text, value);
}

static int take_key(struct mo_entry *x, struct mo_span name,
                    struct mo_span value, struct mo_span *ref, struct mo_err *e)
{
    struct mo_entry_secret *s = mo_arena_new(x->a, struct mo_entry_secret);
    const char *wrong = mo_secret_value_wrong(value);
    char text[MO_SECRET_NAME_MAX + 1];
    int n = snprintf(text, sizeof(text), "%s.%.*s", x->server,
                     (int)mo_span_head(name, sizeof(text)).n, name.p);

    if (wrong)
        return mo_fail(e, MO_EINVAL, "the value of '%.*s' %s",
                       (int)mo_span_head(name, 80).n, name.p, wrong);
    if (n < 0 || (size_t)n >= sizeof(text) ||
        !mo_secret_name_ok(mo_span(text, (size_t)n)))
        return mo_fail(e, MO_EINVAL,
                       "'%.*s' is not a valid name of a secret; store it under "
                       "another and refer to it as ${secret:NAME}",
                       (int)mo_span_head(name, 80).n, name.p);
    if (s == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    s->name = mo_span(mo_arena_strndup(x->a, text, (size_t)n), (size_t)n);
    s->value = mo_arena_strndup(x->a, value.p, value.n);
    s->n = value.n;
    if (s->name.p == NULL || s->value == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    s->next = x->secrets;
    x->secrets = s;
    *ref = s->name;
    return 0;
}

/* Writes one value of `env` or `headers`, or a reference if it is a key. */
static int put_value(struct mo_entry *x, struct mo_span name, struct mo_json v,
                     struct mo_buf *out, struct mo_err *e)
{
    struct mo_span value = {NULL, 0}, ref = {NULL, 0};
    int rc = 0;

    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str(v, x->a, &value) < 0)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    /* a value that is no text is reported by the loader */
    if (!mo_json_is(v, MO_JSON_STRING) || !is_key(x, name, value)) {
        mo_json_compact(v, out);
        return 0;
    }
    rc = take_key(x, name, value, &ref, e);
    if (rc == 0)
        mo_buf_printf(out, "\"${secret:%.*s}\"", (int)ref.n, ref.p);
    return rc;
}

void mo_entry_wipe(struct mo_entry_secret **list)
{
    for (struct mo_entry_secret *s = mo_take_ptr(list); s; s = s->next)
        if (s->value)
            explicit_bzero(s->value, s->n);
}

/* --- the entry ----------------------------------------------------------- */

/* Older clients name the container type as well; the image is enough. */
static bool is_redundant(struct mo_span name, struct mo_json v)
{
    return mo_json_is(v, MO_JSON_NULL) ||
           (mo_span_is(name, "transport") &&
            mo_json_str_eq(v, MO_SPAN("stdio-docker")));
}

/* Writes the entry, or one of its members whose values may be keys. */
static int put_object(struct mo_entry *x, struct mo_json from, bool is_entry,
                      struct mo_buf *out, struct mo_err *e)
{
    const char *comma = "";
    struct mo_span name;
    int rc = 0;

    mo_buf_putc(out, '{');
    mo_json_each_while (at, from, rc == 0) {
        if (mo_json_str(at.key, x->a, &name) < 0)
            return mo_fail(e, MO_ENOMEM, "out of memory");
        if (is_entry)
            name = translate_name(name);
        if (is_entry && (is_reserved(name) || is_redundant(name, at.val)))
            continue;
        mo_buf_puts(out, comma);
        comma = ",";
        mo_json_quote(out, name);
        mo_buf_putc(out, ':');
        if (!is_entry)
            rc = put_value(x, name, at.val, out, e);
        else if (has_keys(name) && mo_json_is(at.val, MO_JSON_OBJECT))
            rc = put_object(x, at.val, false, out, e);
        else
            mo_json_compact(at.val, out);
    }
    mo_buf_putc(out, '}');
    return rc;
}

int mo_entry_put(struct mo_entry *x, struct mo_json from, struct mo_buf *out,
                 struct mo_err *e)
{
    int rc = put_object(x, from, true, out, e);

    if (rc == 0 && mo_buf_err(out))
        rc = mo_fail(e, MO_EINVAL, "the server's texts are too long");
    return rc;
}

/* --- display -------------------------------------------------------------- */

static void show_text(struct mo_jw *w, struct mo_json v, bool is_url)
{
    mo_autobuf struct mo_buf plain = {.max = MO_ENTRY_JSON_MAX};
    mo_autobuf struct mo_buf masked = {.max = MO_ENTRY_JSON_MAX};

    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &plain) == 0) {
        if (is_url)
            mo_config_put_url(&masked, mo_buf_cstr(&plain));
        else
            (void)mo_reference_mask(mo_buf_view(&plain), &masked);
    }
    mo_jw_str(w, mo_buf_view(&masked));
}

/* In oauth, only the client secret is a key. */
static void show_map(struct mo_jw *w, struct mo_json map, bool all)
{
    mo_jw_obj(w);
    mo_json_each (m, map) {
        mo_jw_key_raw(w, m.key);
        if (all || mo_json_str_eq(m.key, MO_SPAN("clientSecret")))
            show_text(w, m.val, false);
        else
            mo_jw_raw(w, mo_json_text(m.val));
    }
    mo_jw_end(w);
}

void mo_entry_show(struct mo_jw *w, struct mo_json entry)
{
    mo_jw_obj(w);
    mo_json_each (m, entry) {
        bool all = mo_json_str_eq(m.key, MO_SPAN("env")) ||
                   mo_json_str_eq(m.key, MO_SPAN("headers"));

        mo_jw_key_raw(w, m.key);
        if (mo_json_is(m.val, MO_JSON_OBJECT))
            show_map(w, m.val, all);
        else if (mo_json_str_eq(m.key, MO_SPAN("url")) &&
                 mo_json_is(m.val, MO_JSON_STRING))
            show_text(w, m.val, true);
        else
            mo_jw_raw(w, mo_json_text(m.val));
    }
    mo_jw_end(w);
}

/* --- reading the request -------------------------------------------------- */

static void read_flag(struct mo_json body, const char *key, bool *on)
{
    bool b = false;

    if (mo_json_bool(mo_json_get(body, key), &b) == 0)
        *on |= b;
}

static int read_name(struct job *j, struct mo_json body, struct mo_err *e)
{
    struct mo_json name = mo_json_get(body, "name");
    struct mo_span text = {NULL, 0};

    if (j->server == NULL && mo_json_is(name, MO_JSON_STRING) &&
        mo_json_str(name, &j->a, &text) == 0)
        j->server = mo_arena_strndup(&j->a, text.p, text.n);
    if (j->server == NULL || *j->server == '\0' ||
        (text.p && strlen(j->server) != text.n))
        return mo_fail(e, MO_EINVAL,
                       "the body is {name, and one of command, "
                       "url or image}");
    return 0;
}

/* Accepts {name, config: {...}} or all members in one object. */
static int read_description(struct job *j, struct mo_json body,
                            struct mo_err *e)
{
    struct mo_json config = mo_json_get(body, "config");

    if (config.p && !mo_json_is(config, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL, "'config' is an object");
    j->described = config.p ? config : body;
    j->entry.keep = mo_json_get(body, "secrets");
    read_flag(body, "test", &j->test);
    read_flag(body, "dryRun", &j->dry);
    read_flag(body, "replace", &j->replace);
    return 0;
}

int mo_manage_edit_read(struct job *j, struct mo_err *e)
{
    struct mo_json_doc doc;
    int rc = 0;

    j->entry.a = &j->a;
    if (j->verb == MO_MANAGE_IMPORT) {
        j->test = false;
        return 0;
    }
    if (j->verb == MO_MANAGE_REMOVE_VIEW)
        j->test = false;
    if (j->verb == MO_MANAGE_REMOVE || j->verb == MO_MANAGE_TEST ||
        j->verb == MO_MANAGE_REMOVE_VIEW) {
        j->test = j->verb == MO_MANAGE_TEST;
        j->entry.server = j->server;
        return 0;
    }
    if (j->verb == MO_MANAGE_REMOVE_PROVIDER) {
        j->test = false;
        return mo_manage_provider_read(j, (struct mo_json){NULL, 0}, e);
    }
    if (mo_json_parse(mo_buf_view(&j->body), 0, &doc, e) < 0)
        return mo_wrap(e, "the body is not JSON");
    if (!mo_json_is(doc.root, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL, "the body is an object");
    if (j->verb == MO_MANAGE_SET_VIEW) {
        j->test = false;
        j->described = doc.root;
        return 0;
    }
    if (mo_manage_is_model(j->verb))
        return mo_manage_provider_read(j, doc.root, e);
    rc = read_name(j, doc.root, e);
    if (rc == 0)
        rc = read_description(j, doc.root, e);
    j->entry.server = j->server;
    return rc;
}

/* --- add ------------------------------------------------------------------ */

static struct mo_json find_named(const struct mo_file_edit *r,
                                 const char *section, const char *name)
{
    struct mo_json_doc doc = {.bad_at = 0};

    (void)mo_json_parse(mo_buf_view(&r->text), 0, &doc, NULL);
    return mo_json_get(mo_json_get(doc.root, section), name);
}

static struct mo_json find_entry(const struct mo_file_edit *r,
                                 const char *server)
{
    return find_named(r, "mcpServers", server);
}

static int apply_add(struct job *j, struct mo_file_edit *r, struct mo_err *e)
{
    const char *path[] = {"mcpServers", j->server, NULL};
    mo_autobuf struct mo_buf b = {.max = MO_ENTRY_JSON_MAX};
    int rc = 0;

    if (find_entry(r, j->server).p && !j->replace)
        return mo_fail(e, MO_EEXISTS,
                       "the server '%.64s' exists already; replace it with "
                       "\"replace\": true",
                       j->server);
    rc = mo_entry_put(&j->entry, j->described, &b, e);
    if (rc == 0)
        rc = mo_file_edit_set(r, path, mo_buf_view(&b), e);
    return rc;
}

/* --- patch ---------------------------------------------------------------- */

/* Sets a member; null removes it, also if it does not exist. */
static int set_member(struct mo_file_edit *r, const char *const *path,
                      struct mo_json v, struct mo_span value, struct mo_err *e)
{
    bool out = mo_json_is(v, MO_JSON_NULL);
    int rc = mo_file_edit_set(r, path, out ? mo_span(NULL, 0) : value, e);

    if (out && rc == MO_ENOTFOUND) {
        mo_err_clear(e);
        rc = 0;
    }
    return rc;
}

static const char *text_of(struct job *j, struct mo_json key)
{
    struct mo_span s;

    return mo_json_str(key, &j->a, &s) == 0 ? mo_arena_strndup(&j->a, s.p, s.n)
                                            : NULL;
}

/* Patches env, headers and oauth member by member; other members stay. */
static int patch_section(struct job *j, struct mo_file_edit *r,
                         const char *name, struct mo_json section,
                         struct mo_err *e)
{
    bool keys = has_keys(mo_span_cstr(name));
    mo_autobuf struct mo_buf b = {.max = MO_ENTRY_JSON_MAX};
    int rc = 0;

    mo_json_each_while (at, section, rc == 0) {
        const char *path[] = {"mcpServers", j->server, name, text_of(j, at.key),
                              NULL};

        if (path[3] == NULL) {
            rc = mo_fail(e, MO_ENOMEM, "out of memory");
            break;
        }
        mo_buf_reset(&b);
        if (keys)
            rc = put_value(&j->entry, mo_span_cstr(path[3]), at.val, &b, e);
        else
            mo_json_compact(at.val, &b);
        if (rc == 0)
            rc = set_member(r, path, at.val, mo_buf_view(&b), e);
    }
    return rc;
}

/* True if `enabled` already has this value: nothing to write. */
static bool is_already_set(struct mo_json entry, const char *name,
                           struct mo_json v)
{
    bool is = true, wanted = true;

    if (strcmp(name, "enabled") != 0 || mo_json_bool(v, &wanted) < 0)
        return false;
    (void)mo_json_bool(mo_json_get(entry, "enabled"), &is);
    return is == wanted;
}

static int apply_patch(struct job *j, struct mo_file_edit *r, struct mo_err *e)
{
    int rc = 0;

    if (!find_entry(r, j->server).p)
        return mo_fail(e, MO_ENOTFOUND, "there is no such server");
    mo_json_each_while (at, j->described, rc == 0) {
        const char *name = text_of(j, at.key);
        const char *path[] = {"mcpServers", j->server, name, NULL};

        if (name == NULL)
            return mo_fail(e, MO_ENOMEM, "out of memory");
        if (is_reserved(mo_span_cstr(name)) ||
            is_already_set(find_entry(r, j->server), name, at.val))
            continue;
        rc = mo_json_is(at.val, MO_JSON_OBJECT)
                 ? patch_section(j, r, name, at.val, e)
                 : set_member(r, path, at.val, mo_json_text(at.val), e);
    }
    return rc;
}

static int apply_remove(struct job *j, struct mo_file_edit *r, struct mo_err *e)
{
    const char *path[] = {"mcpServers", j->server, NULL};

    if (!find_entry(r, j->server).p)
        return mo_fail(e, MO_ENOTFOUND, "there is no such server");
    return mo_file_edit_set(r, path, mo_span(NULL, 0), e);
}

/* --- views ---------------------------------------------------------------- */

/* Sets the entry, or removes it (empty value). */
static int apply_view(struct job *j, struct mo_file_edit *r,
                      struct mo_span entry, struct mo_err *e)
{
    const char *path[] = {"views", j->server, NULL};

    if (!entry.n && !find_named(r, "views", j->server).p)
        return mo_fail(e, MO_ENOTFOUND, "there is no such view");
    return mo_file_edit_set(r, path, entry, e);
}

/* --- import --------------------------------------------------------------- */

static int apply_import(struct job *j, struct mo_file_edit *r, struct mo_err *e)
{
    const struct mo_config *cfg = j->m->o.config->now;
    struct mo_plan p = {.store = !j->clear, .replace = j->replace};
    bool write = j->step == SAVE;
    int rc = mo_plan_make(&p, mo_buf_view(&j->body), mo_buf_view(&r->text),
                          mo_config_getenv(cfg, "HOME"), e);

    if (rc < 0)
        return rc;
    if (write)
        rc = mo_plan_write(&p, cfg, r, e);
    mo_buf_reset(&j->plan);
    mo_plan_json(&p, NULL, write && p.writes > 0, &j->plan);
    if (rc == 0 && mo_buf_err(&j->plan))
        rc = mo_fail(e, MO_ENOMEM, "the plan is too big");
    mo_plan_fini(&p);
    return rc;
}

int mo_manage_edit_apply(struct job *j, struct mo_file_edit *r,
                         struct mo_err *e)
{
    mo_entry_wipe(
        &j->entry.secrets); /* called twice: for the check and for the save */
    switch (j->verb) {
    case MO_MANAGE_ADD:
        return apply_add(j, r, e);
    case MO_MANAGE_PATCH:
        return apply_patch(j, r, e);
    case MO_MANAGE_REMOVE:
        return apply_remove(j, r, e);
    case MO_MANAGE_IMPORT:
        return apply_import(j, r, e);
    case MO_MANAGE_SET_VIEW:
        return apply_view(j, r, mo_json_text(j->described), e);
    case MO_MANAGE_REMOVE_VIEW:
        return apply_view(j, r, mo_span(NULL, 0), e);
    case MO_MANAGE_SET_PROVIDER:
    case MO_MANAGE_REMOVE_PROVIDER:
    case MO_MANAGE_SET_MODEL:
        return mo_manage_provider_apply(j, r, e);
    case MO_MANAGE_TEST:
        break;
    }
    return 0;
}

/* --- secrets ------------------------------------------------------------- */

/* Reads the present value of the secret into the undo list. A secret whose
 * value cannot be read is not listed: the undo would delete it. */
static int remember_secret(struct job *j, struct mo_secrets *store,
                           struct mo_span name, struct mo_err *e)
{
    struct mo_entry_secret *u = mo_arena_new(&j->a, struct mo_entry_secret);
    mo_autowipe struct mo_buf b = {.max = MO_SECRET_MAX + 64};

    if (u == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    u->name = name;
    if (mo_secrets_has(store, name)) {
        if (mo_secrets_get(store, name, &b, e) < 0)
            return e->code;
        u->n = b.len;
        u->value = mo_arena_strndup(&j->a, b.p, b.len);
        if (u->value == NULL)
            return mo_fail(e, MO_ENOMEM, "out of memory");
    }
    u->next = j->undo;
    j->undo = u;
    return 0;
}

int mo_manage_edit_store(struct job *j, struct mo_err *e)
{
    struct mo_secrets *store = NULL;
    int rc = 0;

    if (j->entry.secrets == NULL || j->undo)
        return 0;
    rc = mo_secrets_for(j->m->o.config->now, true, &store, e);
    for (struct mo_entry_secret *s = j->entry.secrets; rc == 0 && s;
         s = s->next) {
        rc = remember_secret(j, store, s->name, e);
        if (rc == 0)
            rc = mo_secrets_put(store, s->name, mo_span(s->value, s->n), e);
    }
    mo_secrets_close(store);
    if (rc < 0)
        e->code = MO_EIO; /* an internal failure, not a mistake of the client */
    return rc < 0 ? MO_EIO : 0;
}

/* A secret that was never written needs no removal. */
static int restore_secret(struct mo_secrets *store,
                          const struct mo_entry_secret *u, struct mo_err *e)
{
    int rc = u->value
                 ? mo_secrets_put(store, u->name, mo_span(u->value, u->n), e)
                 : mo_secrets_drop(store, u->name, e);

    return rc == MO_ENOTFOUND ? 0 : rc;
}

void mo_manage_edit_unstore(struct job *j)
{
    struct mo_secrets *store = NULL;
    struct mo_err e;
    int rc = 0;

    if (j->undo == NULL)
        return;
    rc = mo_secrets_for(j->m->o.config->now, true, &store, &e);
    for (struct mo_entry_secret *u = j->undo; rc == 0 && u; u = u->next)
        rc = restore_secret(store, u, &e);
    mo_secrets_close(store);
    if (rc < 0)
        mo_log_err(mo_loop_log(j->m->o.loop), MO_WARN, "manage", &e,
                   "%s: cannot undo the change of a secret", j->server);
}
