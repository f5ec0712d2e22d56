/*
 * api_pages.c - see api_pages.h.
 *
 * To go on, a search skips the rows it had. The others are read before the
 * time of the last row, including that time: rows of the same time may follow,
 * and those that were seen already are skipped.
 */
#include "web/api_pages.h"

static void on_page(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why);

static void read_page(struct mo_api_job *j)
{
    struct mo_err e;

    if (mo_store_read(j->api->store, &j->pages.r, on_page, j, &e) < 0)
        mo_api_error(j, &e);
}

/* The i-th row, newest or best first. */
static const struct mo_row *row_at(const struct mo_api_pages *p,
                                   const struct mo_rows *rows, size_t i)
{
    return &rows->v[p->r.newest ? rows->n - 1 - i : i];
}

/* False: there is nothing further that could be asked for. */
static bool go_on(struct mo_api_pages *p, const struct mo_rows *rows)
{
    uint64_t at = rows->n ? row_at(p, rows, rows->n - 1)->at : 0;
    size_t same = 0;

    if (rows->n == 0)
        return false;
    if (p->r.kind == MO_READ_SEARCH) {
        p->r.after += rows->n;
        return true;
    }
    while (same < rows->n && row_at(p, rows, rows->n - 1 - same)->at == at)
        same++;
    if (same == rows->n && p->r.before == at + 1)
        same = 0; /* more rows of one time than a page has */
    p->r.before = same ? at + 1 : at;
    p->same = same;
    return p->r.before > 0;
}

/* True: there are enough of them. */
static bool take_rows(struct mo_api_job *j, const struct mo_rows *rows)
{
    struct mo_api_pages *p = &j->pages;

    for (size_t i = 0; i < rows->n; i++) {
        const struct mo_row *row = row_at(p, rows, i);

        if (i < p->same && row->at + 1 == p->r.before)
            continue; /* seen on the page before */
        if (!p->cb->mine(j, row))
            continue;
        if (p->got == p->want || j->out.len > MO_API_ANSWER_MAX / 2)
            return true;
        p->cb->each(j, row);
        p->got++;
    }
    return false;
}

static void on_page(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why)
        mo_api_error(j, why);
    else if (j->rq == NULL)
        mo_api_problem(j, 408, "gone", "nobody waits for it");
    else if (take_rows(j, rows))
        j->pages.cb->end(j, true);
    else if (!rows->more || !j->caller[0] || !go_on(&j->pages, rows))
        j->pages.cb->end(j, rows->more && !j->caller[0]);
    else
        read_page(j);
}

void mo_api_pages(struct mo_api_job *j, const struct mo_read *r,
                  const struct mo_api_pages_cb *cb)
{
    struct mo_api_pages *p = &j->pages;

    *p = (struct mo_api_pages){.r = *r, .want = r->limit, .cb = cb};
    mo_buf_reset(&j->text);
    mo_buf_span(&j->text, r->text);
    p->r.text = mo_buf_view(&j->text);
    if (j->caller[0])
        p->r.limit = MO_STORE_ROWS_MAX;
    if (mo_buf_err(&j->text))
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else
        read_page(j);
}
