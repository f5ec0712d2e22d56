/* fts.c - see fts.h. */
#include "store/fts.h"

#include "base/mem.h"
#include "store/sql.h"

struct mo_fts {
    struct mo_sqlite_lib lib;
    sqlite3 *db;
    fts5_tokenizer rules;
    Fts5Tokenizer *it;
};

struct splitting {
    bool (*each)(void *ctx, struct mo_span word);
    void *ctx;
    bool over;
};

/* SQLite gives its table of functions through a pointer that is bound to a
 * statement. */
static fts5_api *find_api(struct mo_fts *w)
{
    fts5_api *api = NULL;
    sqlite3_stmt *st = NULL;

    if (w->lib.sqlite3_prepare_v2(w->db, "SELECT fts5(?1)", -1, &st, NULL) !=
        SQLITE_OK)
        return NULL;
    if (w->lib.sqlite3_bind_pointer(st, 1, &api, "fts5_api_ptr", NULL) ==
        SQLITE_OK)
        (void)w->lib.sqlite3_step(st);
    (void)w->lib.sqlite3_finalize(st);
    return api;
}

static int open_fts(struct mo_fts *w, struct mo_err *e)
{
    /* as in sql.c */
    const char *args[] = {"remove_diacritics", "2"};
    fts5_api *api;
    void *user = NULL;

    if (w->lib.sqlite3_open_v2(":memory:", &w->db,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                               NULL) != SQLITE_OK)
        return mo_fail(e, MO_EUNAVAIL,
                       "store: full-text search: SQLite "
                       "cannot be opened");
    api = find_api(w);
    if (!api ||
        api->xFindTokenizer(api, "unicode61", &user, &w->rules) != SQLITE_OK)
        return mo_fail(e, MO_EUNAVAIL,
                       "store: full-text search: SQLite has no FTS5");
    if (w->rules.xCreate(user, args, MO_COUNT(args), &w->it) != SQLITE_OK)
        return mo_fail(e, MO_ENOMEM, "store: full-text search");
    return 0;
}

int mo_fts_new(struct mo_fts **out, struct mo_err *e)
{
    struct mo_fts *w = mo_new(struct mo_fts);
    int rc = w ? mo_sqlite_load(&w->lib, e) : mo_fail(e, MO_ENOMEM, "store");

    if (w && rc < 0) {
        mo_free(w);
        return rc;
    }
    if (rc == 0)
        rc = open_fts(w, e);
    if (rc < 0)
        mo_fts_free(w);
    else
        *out = w;
    return rc;
}

void mo_fts_free(struct mo_fts *w)
{
    if (!w)
        return;
    if (w->it)
        w->rules.xDelete(w->it);
    (void)w->lib.sqlite3_close(w->db);
    mo_free(w);
}

static int on_word(void *ctx, int flags, const char *p, int n, int from, int to)
{
    struct splitting *s = ctx;

    (void)flags;
    (void)from;
    (void)to;
    s->over = !s->each(s->ctx, mo_span(p, (size_t)n));
    return s->over ? SQLITE_DONE : SQLITE_OK;
}

int mo_fts_each(struct mo_fts *w, struct mo_span text,
                bool (*each)(void *ctx, struct mo_span word), void *ctx)
{
    struct splitting s = {.each = each, .ctx = ctx};
    int rc;

    if (!text.n)
        return 0;
    rc = w->rules.xTokenize(w->it, &s, FTS5_TOKENIZE_DOCUMENT, text.p,
                            (int)text.n, on_word);
    return rc == SQLITE_OK || s.over ? 0 : MO_ENOMEM;
}
