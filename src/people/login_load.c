/* login_load.c - logins that another process, or an earlier one, has stored. */
#include "people/login_priv.h"

#define MISS_S ((uint64_t)2) /* an unknown secret is not read again */

static struct miss *miss_of(struct mo_logins *l, const char *digest)
{
    unsigned at =
        (unsigned)(mo_hex_digit(digest[0]) * 16 + mo_hex_digit(digest[1]));

    return &l->misses[at % MO_LOGIN_MISSES];
}

static void keep_miss(struct mo_logins *l, const char *digest)
{
    struct miss *m = miss_of(l, digest);

    memcpy(m->digest, digest, sizeof(m->digest));
    m->until_s = mo_login_now_s() + MISS_S;
}

/* True if the row makes a login of this process. */
static bool adopt(struct mo_logins *l, const char *digest,
                  const struct mo_login_row *row)
{
    struct login *g;

    if (mo_login_now_s() >= row->began_s + MO_LOGIN_S ||
        mo_login_find(l, digest) ||
        mo_login_has_ended(l, digest, row->name, row->began_ms) ||
        strlen(row->name) >= MO_PERSON_MAX ||
        strlen(row->host) >= MO_LOGIN_HOST_MAX)
        return false;
    g = mo_login_make(l, digest, mo_span_cstr(row->host));
    if (!g)
        return false;
    (void)snprintf(g->who.name, sizeof(g->who.name), "%s", row->name);
    g->began_s = row->began_s;
    g->began_ms = row->began_ms;
    g->provider = mo_login_copy(row->provider);
    g->subject = mo_login_copy(row->subject);
    if (mo_login_take_row(g, row))
        return mo_login_add(l, g) == 0;
    mo_login_free(g);
    return false;
}

static void end_person(struct mo_logins *l, const char *who)
{
    mo_list_each_safe (it, &l->all) {
        struct login *g = mo_container_of(it, struct login, node);

        if (strcmp(g->who.name, who) == 0)
            mo_login_free(g);
    }
    if (l->ended)
        l->ended(l->ctx, who);
}

static void on_loaded(void *ctx, const char *digest,
                      const struct mo_login_row *row, const struct mo_err *why)
{
    struct mo_logins *l = ctx;
    struct load *d = mo_map_del(&l->loads, mo_span_cstr(digest));

    if (!d)
        return;
    if (row && d->is_ended) {
        mo_login_keep_ended(l, "", row->name);
        mo_login_rows_end(l->rows, digest, row->name);
        mo_login_rows_end_person(l->rows, row->name);
        end_person(l, row->name);
    } else if ((!row && !why) || (row && !adopt(l, digest, row))) {
        keep_miss(l, digest);
    }
    mo_login_tell(l, &d->waiting);
    mo_free(d);
}

/* False: that cannot be; the load is gone. */
static bool ask_store(struct mo_logins *l, struct load *d)
{
    if (!l->rows) /* mo_logins_end_early() does it */
        return true;
    d->is_asked = true;
    if (mo_login_rows_get(l->rows, d->digest, on_loaded, l, NULL) == 0)
        return true;
    (void)mo_map_del(&l->loads, mo_span_cstr(d->digest));
    mo_login_tell(l, &d->waiting);
    mo_free(d);
    return false;
}

/* NULL: it is not read, because it cannot be there. */
struct load *mo_login_load(struct mo_logins *l, const char *digest)
{
    struct load *d = mo_map_get(&l->loads, mo_span_cstr(digest));
    const struct miss *m = miss_of(l, digest);

    if (d)
        return d;
    if ((!l->rows && !l->is_early) ||
        (m->until_s > mo_login_now_s() && strcmp(m->digest, digest) == 0))
        return NULL;
    d = mo_new(struct load);
    if (!d)
        return NULL;
    memcpy(d->digest, digest, sizeof(d->digest));
    mo_list_init(&d->waiting);
    if (mo_map_add(&l->loads, mo_span_cstr(d->digest), d) < 0) {
        mo_free(d);
        return NULL;
    }
    return ask_store(l, d) ? d : NULL;
}

void mo_logins_drop_loads(struct mo_logins *l)
{
    mo_map_each (en, &l->loads) {
        struct load *d = en->value;

        mo_login_tell(l, &d->waiting);
        mo_free(d);
    }
    mo_map_clear(&l->loads);
}

static struct load *not_asked(const struct mo_logins *l)
{
    mo_map_each (en, &l->loads) {
        struct load *d = en->value;

        if (!d->is_asked)
            return d;
    }
    return NULL;
}

/* The store is there, or will not come: those who wait go on. */
void mo_logins_end_early(struct mo_logins *l)
{
    struct load *d;

    l->is_early = false;
    mo_timer_stop(l->loop, &l->early);
    if (!l->rows) {
        mo_logins_drop_loads(l);
        return;
    }
    for (d = not_asked(l); d; d = not_asked(l))
        (void)ask_store(l, d);
}

void mo_logins_on_early(struct mo_timer *t)
{
    mo_logins_end_early(mo_container_of(t, struct mo_logins, early));
}

/* A login has ended elsewhere: is it one of these? One after the other. */
static void check_next(struct mo_logins *l);

static void on_checked(void *ctx, const char *digest,
                       const struct mo_login_row *row, const struct mo_err *why)
{
    struct mo_logins *l = ctx;
    struct login *g = mo_login_find(l, digest);

    l->is_checking = false;
    if (g && !why && !row && g->is_saved && !g->is_saving)
        mo_login_close(g);
    check_next(l);
}

static void check_next(struct mo_logins *l)
{
    if (l->is_checking)
        return;
    mo_list_each (it, &l->all) {
        struct login *g = mo_container_of(it, struct login, node);

        if (g->round == l->round || !g->is_saved)
            continue;
        g->round = l->round;
        l->is_checking =
            mo_login_rows_get(l->rows, g->digest, on_checked, l, NULL) == 0;
        return;
    }
}

static void on_changed(void *ctx)
{
    struct mo_logins *l = ctx;

    l->round++;
    check_next(l);
}

void mo_logins_on_look(struct mo_timer *t)
{
    struct mo_logins *l = mo_container_of(t, struct mo_logins, look);

    if (!l->rows || mo_list_empty(&l->all))
        return;
    mo_login_heed_ended(l);
    mo_login_rows_look(l->rows, on_changed, l);
    mo_timer_start(l->loop, &l->look, MO_LOGIN_LOOK_MS);
}
