/*
 * api_owner.c - see api_owner.h.
 */
#include "web/api_owner.h"

#include "web/api_pages.h"

/* Sessions of one person that a search looks at: so many fit into j->arg. */
#define SESSIONS_MAX (unsigned)(MO_API_ARG_MAX / (MO_SESSION_ID_MAX + 1))

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

void mo_api_if_mine(struct mo_api_job *j, mo_api_next *next)
{
    const struct mo_read r = {.kind = MO_READ_SESSION,
                              .session = mo_span_cstr(j->id)};
    struct mo_err e;

    j->next = next;
    if (!j->caller[0])
        next(j);
    else if (mo_store_read(j->api->store, &r, on_row, j, &e) < 0)
        mo_api_error(j, &e);
}

bool mo_api_row_is_mine(struct mo_api_job *j, const struct mo_row *row)
{
    return mo_api_is_mine(j, row->doc);
}

/* Their ids, each with a line end: no id has one. */
static void add_session(struct mo_api_job *j, const struct mo_row *row)
{
    mo_buf_span(&j->arg, row->session);
    mo_buf_putc(&j->arg, '\n');
}

static void on_sessions(struct mo_api_job *j, bool more)
{
    (void)more; /* the last used ones */
    if (mo_buf_err(&j->arg))
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else
        j->next(j);
}

void mo_api_find_mine(struct mo_api_job *j, mo_api_next *next)
{
    static const struct mo_api_pages_cb cb = {mo_api_row_is_mine, add_session,
                                              on_sessions};
    const struct mo_read r = {
        .kind = MO_READ_SESSIONS, .limit = SESSIONS_MAX, .newest = true};

    j->next = next;
    if (j->caller[0])
        mo_api_pages(j, &r, &cb);
    else
        next(j);
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
