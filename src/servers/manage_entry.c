#include "servers/manage_entry.h"

#include <stdio.h>

#include "config/doc.h"
#include "config/reference.h"
#include "secrets/secrets.h"
#include "servers/import.h"

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

bool mo_entry_reserved(struct mo_span key)
{
    for (size_t i = 0; i < MO_COUNT(reserved); i++) {
        if (mo_span_is(key, reserved[i]))
            return true;
    }
    return false;
}

bool mo_entry_has_keys(struct mo_span member)
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

int mo_entry_value(struct mo_entry *x, struct mo_span name, struct mo_json v,
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

void mo_entry_wipe(struct mo_entry *x)
{
    for (struct mo_entry_secret *s = x->secrets; s; s = s->next)
        explicit_bzero(s->value, s->n);
    x->secrets = NULL;
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
        if (is_entry && (mo_entry_reserved(name) || is_redundant(name, at.val)))
            continue;
        mo_buf_puts(out, comma);
        comma = ",";
        mo_json_quote(out, name);
        mo_buf_putc(out, ':');
        if (!is_entry)
            rc = mo_entry_value(x, name, at.val, out, e);
        else if (mo_entry_has_keys(name) && mo_json_is(at.val, MO_JSON_OBJECT))
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
