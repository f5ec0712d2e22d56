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
    for (struct mo_json_walk m = mo_json_walk(list); mo_json_step(&m);) {
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
    struct mo_span value, ref = {NULL, 0};
    int rc = 0;

    if (!mo_json_is(v, MO_JSON_STRING)) { /* the loader reports it */
        mo_json_compact(v, out);
        return 0;
    }
    if (mo_json_str(v, x->a, &value) < 0)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    if (!is_key(x, name, value)) {
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

static int put_map(struct mo_entry *x, struct mo_json map, struct mo_buf *out,
                   struct mo_err *e)
{
    struct mo_span name;
    bool first = true;
    int rc = 0;

    mo_buf_putc(out, '{');
    for (struct mo_json_walk at = mo_json_walk(map);
         rc == 0 && mo_json_step(&at);) {
        if (mo_json_str(at.key, x->a, &name) < 0)
            return mo_fail(e, MO_ENOMEM, "out of memory");
        if (!first)
            mo_buf_putc(out, ',');
        first = false;
        mo_buf_span(out, mo_json_text(at.key));
        mo_buf_putc(out, ':');
        rc = mo_entry_value(x, name, at.val, out, e);
    }
    mo_buf_putc(out, '}');
    return rc;
}

static int put_member(struct mo_entry *x, struct mo_span name, struct mo_json v,
                      bool first, struct mo_buf *out, struct mo_err *e)
{
    if (!first)
        mo_buf_putc(out, ',');
    mo_json_quote(out, name);
    mo_buf_putc(out, ':');
    if (mo_entry_has_keys(name) && mo_json_is(v, MO_JSON_OBJECT))
        return put_map(x, v, out, e);
    mo_json_compact(v, out);
    return 0;
}

/* Older clients name the container type as well; the image is enough. */
static bool is_redundant(struct mo_span name, struct mo_json v)
{
    return mo_json_is(v, MO_JSON_NULL) ||
           (mo_span_is(name, "transport") &&
            mo_json_str_eq(v, MO_SPAN("stdio-docker")));
}

int mo_entry_put(struct mo_entry *x, struct mo_json from, struct mo_buf *out,
                 struct mo_err *e)
{
    struct mo_span name;
    bool first = true;
    int rc = 0;

    mo_buf_putc(out, '{');
    for (struct mo_json_walk at = mo_json_walk(from);
         rc == 0 && mo_json_step(&at);) {
        if (mo_json_str(at.key, x->a, &name) < 0)
            return mo_fail(e, MO_ENOMEM, "out of memory");
        name = translate_name(name);
        if (mo_entry_reserved(name) || is_redundant(name, at.val))
            continue;
        rc = put_member(x, name, at.val, first, out, e);
        first = false;
    }
    mo_buf_putc(out, '}');
    if (rc == 0 && mo_buf_err(out))
        rc = mo_fail(e, MO_EINVAL, "the server's texts are too long");
    return rc;
}

/* --- display -------------------------------------------------------------- */

static void show_text(struct mo_jw *w, struct mo_json v)
{
    struct mo_buf plain, masked;

    mo_buf_init(&plain, MO_ENTRY_JSON_MAX);
    mo_buf_init(&masked, MO_ENTRY_JSON_MAX);
    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &plain) == 0)
        (void)mo_reference_mask(mo_buf_view(&plain), &masked);
    mo_jw_str(w, mo_buf_view(&masked));
    mo_buf_fini(&plain);
    mo_buf_fini(&masked);
}

/* In oauth, only the client secret is a key. */
static void show_map(struct mo_jw *w, struct mo_json map, bool all)
{
    mo_jw_obj(w);
    for (struct mo_json_walk m = mo_json_walk(map); mo_json_step(&m);) {
        mo_jw_key_raw(w, m.key);
        if (all || mo_json_str_eq(m.key, MO_SPAN("clientSecret")))
            show_text(w, m.val);
        else
            mo_jw_raw(w, mo_json_text(m.val));
    }
    mo_jw_end(w);
}

static void show_url(struct mo_jw *w, struct mo_json v)
{
    struct mo_buf plain, masked;

    mo_buf_init(&plain, MO_ENTRY_JSON_MAX);
    mo_buf_init(&masked, MO_ENTRY_JSON_MAX);
    (void)mo_json_str_buf(v, &plain);
    mo_config_put_url(&masked, mo_buf_cstr(&plain));
    mo_jw_str(w, mo_buf_view(&masked));
    mo_buf_fini(&plain);
    mo_buf_fini(&masked);
}

void mo_entry_show(struct mo_jw *w, struct mo_json entry)
{
    mo_jw_obj(w);
    for (struct mo_json_walk m = mo_json_walk(entry); mo_json_step(&m);) {
        bool all = mo_json_str_eq(m.key, MO_SPAN("env")) ||
                   mo_json_str_eq(m.key, MO_SPAN("headers"));

        mo_jw_key_raw(w, m.key);
        if (mo_json_is(m.val, MO_JSON_OBJECT))
            show_map(w, m.val, all);
        else if (mo_json_str_eq(m.key, MO_SPAN("url")) &&
                 mo_json_is(m.val, MO_JSON_STRING))
            show_url(w, m.val);
        else
            mo_jw_raw(w, mo_json_text(m.val));
    }
    mo_jw_end(w);
}
