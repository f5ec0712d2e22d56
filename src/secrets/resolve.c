/* resolve.c - values from the environment, files and secret stores; see
 * resolve.h. */
#include "secrets/resolve.h"

#include "config/reference.h"
#include "secrets/key.h"
#include "secrets/system.h"

#define SECRET_FILE_MAX ((size_t)64 * 1024)

static int resolve_env(const struct mo_config *c, const char *name,
                       struct mo_buf *out, struct mo_err *e)
{
    const char *v = mo_config_getenv(c, name);

    if (!v)
        return mo_fail(e, MO_EINVAL, "${env:%s} is not set", name);
    return mo_buf_puts(out, v);
}

static int resolve_file(const char *path, struct mo_buf *out, struct mo_err *e)
{
    mo_autowipe struct mo_buf text = {.max = SECRET_FILE_MAX};
    int rc = mo_file_read(path, SECRET_FILE_MAX, &text, NULL, e);
    struct mo_span v = mo_buf_view(&text);

    if (mo_span_ends(v, MO_SPAN("\r\n")))
        v.n -= 2;
    else if (mo_span_ends(v, MO_SPAN("\n")))
        v.n--;
    return rc < 0 ? rc : mo_buf_span(out, v);
}

static int resolve_secret(const struct mo_config *c, struct mo_span name,
                          struct mo_buf *out, struct mo_err *e)
{
    struct mo_err why = {0};
    struct mo_secrets *s;
    int rc = mo_secrets_for(c, false, &s, e), sub;

    if (rc < 0)
        return mo_wrap(e, "${secret:%.*s}", (int)name.n, name.p);
    rc = mo_secrets_get(s, name, out, &why);
    mo_secrets_close(s);
    if (rc == MO_ENOTFOUND) {
        sub = mo_secret_system_get(c, name, out, e);
        if (sub != MO_ENOTFOUND)
            return sub;
    }
    if (rc < 0 && e)
        *e = why;
    return rc;
}

static int resolve_part(const struct mo_config *c,
                        const struct mo_reference_part *part,
                        struct mo_buf *out, struct mo_err *e)
{
    mo_autofree char *name = mo_strndup(part->text.p, part->text.n);

    if (!name)
        return mo_fail(e, MO_ENOMEM, "secret reference");
    switch (part->kind) {
    case MO_REFERENCE_TEXT:
        return mo_buf_span(out, part->text);
    case MO_REFERENCE_ENV:
        return resolve_env(c, name, out, e);
    case MO_REFERENCE_FILE:
        return resolve_file(name, out, e);
    case MO_REFERENCE_SECRET:
        return resolve_secret(c, part->text, out, e);
    }
    return mo_fail(e, MO_EINVAL, "unknown reference");
}

int mo_reference_resolve(const struct mo_config *c, const char *text,
                         struct mo_buf *out, struct mo_err *e)
{
    return mo_reference_resolve_told(c, text, out, NULL, NULL, e);
}

int mo_reference_resolve_told(const struct mo_config *c, const char *text,
                              struct mo_buf *out, mo_reference_told_fn *told,
                              void *ctx, struct mo_err *e)
{
    struct mo_span rest = mo_span_cstr(text);
    struct mo_reference_part part;
    int rc;

    for (rc = mo_reference_next(&rest, &part, e); rc > 0;
         rc = mo_reference_next(&rest, &part, e)) {
        size_t from = out->len;
        int sub = resolve_part(c, &part, out, e);

        if (sub < 0)
            return e && e->code
                       ? e->code
                       : mo_fail(e, sub,
                                 "the value of a reference is too long");
        if (told && part.kind != MO_REFERENCE_TEXT && out->len > from)
            told(ctx, mo_span(out->p + from, out->len - from));
    }
    return rc;
}
