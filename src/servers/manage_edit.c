/* manage_edit.c - applies a request to the configuration file; see
 * manage_priv.h. */
#include "servers/manage_priv.h"

#include "secrets/key.h"

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
    if (j->verb == MO_MANAGE_REMOVE || j->verb == MO_MANAGE_TEST) {
        j->test = j->verb == MO_MANAGE_TEST;
        j->entry.server = j->server;
        return 0;
    }
    if (mo_json_parse(mo_buf_view(&j->body), 0, &doc, e) < 0)
        return mo_wrap(e, "the body is not JSON");
    if (!mo_json_is(doc.root, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL, "the body is an object");
    rc = read_name(j, doc.root, e);
    if (rc == 0)
        rc = read_description(j, doc.root, e);
    j->entry.server = j->server;
    return rc;
}

/* --- add ------------------------------------------------------------------ */

static struct mo_json find_entry(const struct mo_file_edit *r,
                                 const char *server)
{
    struct mo_json_doc doc = {.bad_at = 0};

    (void)mo_json_parse(mo_buf_view(&r->text), 0, &doc, NULL);
    return mo_json_get(mo_json_get(doc.root, "mcpServers"), server);
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
    bool keys = mo_entry_has_keys(mo_span_cstr(name));
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
            rc =
                mo_entry_value(&j->entry, mo_span_cstr(path[3]), at.val, &b, e);
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
        if (mo_entry_reserved(mo_span_cstr(name)) ||
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
    mo_entry_wipe(&j->entry); /* called twice: for the check and for the save */
    switch (j->verb) {
    case MO_MANAGE_ADD:
        return apply_add(j, r, e);
    case MO_MANAGE_PATCH:
        return apply_patch(j, r, e);
    case MO_MANAGE_REMOVE:
        return apply_remove(j, r, e);
    case MO_MANAGE_IMPORT:
        return apply_import(j, r, e);
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
    struct undo *u = mo_arena_new(&j->a, struct undo);
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
static int restore_secret(struct mo_secrets *store, const struct undo *u,
                          struct mo_err *e)
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
    for (struct undo *u = j->undo; rc == 0 && u; u = u->next)
        rc = restore_secret(store, u, &e);
    mo_secrets_close(store);
    if (rc < 0)
        mo_log_err(mo_loop_log(j->m->o.loop), MO_WARN, "manage", &e,
                   "%s: cannot undo the change of a secret", j->server);
}
