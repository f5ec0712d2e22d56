/*
 * api_owner.c - see api_owner.h.
 */
#include "web/api_owner.h"

bool mo_api_is_mine(const struct mo_api_job *j, struct mo_span doc)
{
    struct mo_json_doc parsed;

    if (!j->caller[0])
        return true;
    return mo_json_parse(doc, 0, &parsed, NULL) == 0 &&
           mo_json_str_eq(mo_json_get(parsed.root, "owner"),
                          mo_span_cstr(j->caller));
}

static void on_row(void *ctx, const struct mo_rows *rows,
                   const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why)
        mo_api_error(j, why);
    else if (rows->n == 0 || !mo_api_is_mine(j, rows->v[0].doc))
        mo_api_problem(j, 404, "not_found", "there is no such session");
    else
        j->next(j);
}

static void read_then(struct mo_api_job *j, const struct mo_read *r,
                      void (*done)(void *ctx, const struct mo_rows *rows,
                                   const struct mo_err *why),
                      mo_api_next *next)
{
    struct mo_err e;

    j->next = next;
    if (!j->caller[0])
        next(j);
    else if (mo_store_read(j->api->store, r, done, j, &e) < 0)
        mo_api_error(j, &e);
}

void mo_api_if_mine(struct mo_api_job *j, mo_api_next *next)
{
    const struct mo_read r = {.kind = MO_READ_SESSION,
                              .session = mo_span_cstr(j->id)};

    read_then(j, &r, on_row, next);
}

/* Their ids, each with a line end: no id has one. */
static void on_sessions(void *ctx, const struct mo_rows *rows,
                        const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why) {
        mo_api_error(j, why);
        return;
    }
    for (size_t i = 0; i < rows->n; i++) {
        if (!mo_api_is_mine(j, rows->v[i].doc))
            continue;
        mo_buf_span(&j->arg, rows->v[i].session);
        mo_buf_putc(&j->arg, '\n');
    }
    if (mo_buf_err(&j->arg))
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else
        j->next(j);
}

void mo_api_find_mine(struct mo_api_job *j, mo_api_next *next)
{
    const struct mo_read r = {
        .kind = MO_READ_SESSIONS, .limit = MO_STORE_ROWS_MAX, .newest = true};

    read_then(j, &r, on_sessions, next);
}

bool mo_api_among(const struct mo_api_job *j, struct mo_span session)
{
    struct mo_span rest = mo_buf_view(&j->arg);

    if (!j->caller[0])
        return true;
    while (rest.n > 0)
        if (mo_span_eq(mo_span_cut(&rest, '\n'), session))
            return true;
    return false;
}
