#include "connect/shared_accounts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/json/json.h"
#include "codec/text/base64.h"
#include "connect/account_file.h"

#define ROOM        "connections"
#define KIND        "file"
#define LEASE       "connection-"
#define FILE_MAX    (2 * MO_TOKENS_FILE_MAX)
#define LOCK_MS     500
#define UNUSED_MS   5000 /* a claim that nobody comes back for */
#define CHANGES_MAX 1024

enum claim_state {
    CLAIM_TAKING,  /* waits for the lease */
    CLAIM_READING, /* waits for the row */
    CLAIM_HELD,    /* may be given, or was */
    CLAIM_WRITING, /* the new row is being written */
};

/* The right to refresh one connection. */
struct claim {
    struct mo_list node;
    struct mo_shared_accounts *all;
    char key[MO_SHA256_HEX + 1];
    enum claim_state state;
    struct mo_lease *lease; /* NULL: lost, or the store is away */
    bool given;
    struct mo_timer unused;
};

struct mo_shared_accounts {
    struct mo_shared_accounts_opts o;
    struct mo_shared_rows *rows;
    struct mo_list claims;
    struct mo_map changes; /* key -> struct change *, not in the store yet */
    bool is_closed, is_warned;
};

/* A change made here. It counts as later than what the store has when it gets
 * there, whatever the clocks say. */
struct change {
    bool removed, is_sent;
    uint64_t at_ms; /* of a removal */
};

static void free_if_over(struct mo_shared_accounts *s)
{
    if (!s->is_closed || !mo_list_empty(&s->claims))
        return;
    mo_map_each (en, &s->changes)
        mo_free(en->value);
    mo_map_fini(&s->changes);
    mo_config_unref(s->o.cfg);
    mo_free(s);
}

/* --- files ---------------------------------------------------------------- */

static int put_path(const struct mo_shared_accounts *s, const char *key,
                    char out[PATH_MAX])
{
    return mo_account_path(s->o.cfg, key, out);
}

/* The time of the file in milliseconds; 0: there is none. */
static uint64_t time_of(const char *path)
{
    struct mo_file_stamp f;

    mo_file_stamp(path, &f);
    return f.there ? (uint64_t)f.mtime.tv_sec * 1000 +
                         (uint64_t)f.mtime.tv_nsec / 1000000
                   : 0;
}

static void set_time(const char *path, uint64_t at_ms)
{
    const struct timespec t[2] = {
        {.tv_nsec = UTIME_OMIT},
        {(time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000}};

    (void)utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW);
}

static int put_doc(const char *path, struct mo_buf *doc)
{
    mo_autobuf struct mo_buf sealed = {.max = FILE_MAX},
                             text = {.max = 2 * FILE_MAX};
    uint64_t at_ms = time_of(path);
    struct mo_jw w;
    int rc = at_ms ? mo_file_read(path, FILE_MAX, &sealed, NULL, NULL)
                   : MO_ENOTFOUND;

    if (rc == 0)
        rc = mo_base64_put(&text, mo_buf_view(&sealed));
    if (rc < 0)
        return rc;
    w = mo_jw_object(doc);
    mo_jw_member_u64(&w, "at", at_ms);
    mo_jw_member(&w, "seal", mo_buf_view(&text));
    mo_jw_end(&w);
    return mo_buf_err(doc);
}

static void tell(const struct mo_shared_accounts *s, struct mo_span plain,
                 bool on)
{
    mo_autobuf struct mo_buf server = {.max = 4096}, person = {.max = 4096};
    struct mo_account_info i = {.tokens = NULL};

    if (!mo_account_names(plain, &i) || !s->o.told)
        return;
    if (mo_buf_span(&server, i.server) == 0 &&
        mo_buf_span(&person, i.person) == 0)
        s->o.told(s->o.ctx, mo_buf_cstr(&server), mo_buf_cstr(&person), on);
}

static void warn_key(struct mo_shared_accounts *s)
{
    if (!s->is_warned)
        mo_log(mo_loop_log(s->o.loop), MO_WARN, ROOM,
               "connections of other servers do not open: all servers need "
               "the same key (MCP_ORCHESTRATOR_SECRET_KEY)");
    s->is_warned = true;
}

/* Replaces the file by that of a row, if the row is newer. */
static void take_file(struct mo_shared_accounts *s, const char *key,
                      struct mo_span sealed, uint64_t at_ms)
{
    mo_autowipe struct mo_buf plain = {.max = FILE_MAX};
    char path[PATH_MAX], dir[PATH_MAX];
    mo_autofd int held = -1;
    uint64_t own_ms;
    struct mo_err e;

    if (put_path(s, key, path) < 0 || put_path(s, "", dir) < 0)
        return;
    if (mo_secrets_unseal(s->o.vault, mo_span_cstr(key), sealed, &plain, NULL) <
        0) {
        warn_key(s);
        return;
    }
    (void)mo_file_mkdir(dir, NULL); /* if this fails, saving reports it */
    held = mo_file_lock(path, LOCK_MS, NULL);
    (void)held; /* until we return */
    own_ms = time_of(path);
    if (own_ms >= at_ms)
        return;
    if (mo_file_save(path, sealed, 0600, &e) < 0) {
        mo_log_err(mo_loop_log(s->o.loop), MO_WARN, ROOM, &e, "%s", path);
        return;
    }
    set_time(path, at_ms);
    if (!own_ms)
        tell(s, mo_buf_view(&plain), true);
}

static void drop_file(struct mo_shared_accounts *s, const char *key,
                      const char *path)
{
    mo_autowipe struct mo_buf plain = {.max = FILE_MAX};
    mo_autobuf struct mo_buf sealed = {.max = FILE_MAX};
    bool opens = mo_file_read(path, FILE_MAX, &sealed, NULL, NULL) == 0 &&
                 mo_secrets_unseal(s->o.vault, mo_span_cstr(key),
                                   mo_buf_view(&sealed), &plain, NULL) == 0;

    if (unlink(path) == 0 && opens)
        tell(s, mo_buf_view(&plain), false);
}

/* --- rows ----------------------------------------------------------------- */

static uint64_t at_of(struct mo_json doc)
{
    uint64_t at_ms = 0;

    (void)mo_json_u64(mo_json_get(doc, "at"), &at_ms);
    return at_ms;
}

static void take_row(struct mo_shared_accounts *s, const char *key,
                     struct mo_span text)
{
    mo_autobuf struct mo_buf b64 = {.max = 2 * FILE_MAX},
                             sealed = {.max = FILE_MAX};
    struct mo_json_doc doc;
    char path[PATH_MAX];
    uint64_t at_ms;

    if (mo_json_parse(text, 0, &doc, NULL) < 0 || put_path(s, key, path) < 0)
        return;
    at_ms = at_of(doc.root);
    if (mo_json_flag(doc.root, "gone")) {
        if (time_of(path) && time_of(path) <= at_ms)
            drop_file(s, key, path);
    } else if (time_of(path) < at_ms &&
               mo_json_str_buf(mo_json_get(doc.root, "seal"), &b64) == 0 &&
               mo_base64_decode(mo_buf_view(&b64), &sealed) == 0) {
        take_file(s, key, mo_buf_view(&sealed), at_ms);
    }
}

static uint64_t row_at(const struct mo_shared_row *row)
{
    struct mo_json_doc doc;

    return row && mo_json_parse(mo_span(row->doc, row->n), 0, &doc, NULL) == 0
               ? at_of(doc.root)
               : 0;
}

static void forget_change(struct mo_shared_accounts *s, const char *key)
{
    mo_free(mo_map_del(&s->changes, mo_span_cstr(key)));
}

/* True: the file was removed here after the row was written, and the store
 * gets that. A file that was written here is made later than the row. */
static bool put_change(struct mo_shared_accounts *s, const char *key,
                       const struct mo_shared_row *row,
                       struct mo_shared_rows *r)
{
    struct change *x = mo_map_get(&s->changes, mo_span_cstr(key));
    mo_autobuf struct mo_buf doc = {.max = 64};
    uint64_t at_ms = row_at(row);
    char path[PATH_MAX];

    if (!x)
        return false;
    if (x->is_sent && (row->is_gone == x->removed || at_ms > x->at_ms)) {
        forget_change(s, key);
        return false;
    }
    if (!x->is_sent && at_ms >= x->at_ms)
        x->at_ms = at_ms + 1;
    x->is_sent = true;
    if (!x->removed) {
        if (put_path(s, key, path) == 0 && time_of(path) &&
            time_of(path) <= at_ms)
            set_time(path, x->at_ms);
        return false;
    }
    mo_shared_rows_put_gone(&doc, x->at_ms);
    mo_shared_rows_put(r, KIND, mo_span_cstr(key), mo_buf_view(&doc));
    return true;
}

static void put_newer(struct mo_shared_accounts *s, const char *key,
                      const struct mo_map *theirs, struct mo_shared_rows *r)
{
    const struct mo_shared_row *row = mo_map_get(theirs, mo_span_cstr(key));
    mo_autobuf struct mo_buf doc = {.max = MO_STORE_DOC_MAX};
    char path[PATH_MAX];

    if (put_path(s, key, path) < 0 || time_of(path) <= row_at(row))
        return;
    if (put_doc(path, &doc) == 0)
        mo_shared_rows_put(r, KIND, mo_span_cstr(key), mo_buf_view(&doc));
}

static void merge(void *ctx, const struct mo_map *theirs,
                  struct mo_shared_rows *r)
{
    struct mo_shared_accounts *s = ctx;
    char dir[PATH_MAX];
    DIR *d = NULL;

    mo_map_each (en, theirs) {
        const struct mo_shared_row *row = en->value;
        char key[MO_SHA256_HEX + 1];

        (void)snprintf(key, sizeof(key), "%.*s", (int)en->key_len, en->key);
        if (mo_account_is_key(key) && !put_change(s, key, row, r))
            take_row(s, key, mo_span(row->doc, row->n));
    }
    if (put_path(s, "", dir) == 0)
        d = opendir(dir);
    for (struct dirent *en = d ? readdir(d) : NULL; en; en = readdir(d))
        if (mo_account_is_key(en->d_name))
            put_newer(s, en->d_name, theirs, r);
    if (d)
        (void)closedir(d);
}

void mo_shared_accounts_changed(struct mo_shared_accounts *s, const char *key,
                                bool removed)
{
    struct change *x = NULL;

    if (s->is_closed)
        return;
    forget_change(s, key);
    x = mo_new(struct change);
    if (x)
        *x = (struct change){.removed = removed, .at_ms = mo_wall_ms()};
    if (x && (s->changes.len >= CHANGES_MAX ||
              mo_map_put(&s->changes, mo_span_cstr(key), x, NULL) < 0))
        mo_free(x);
    mo_shared_rows_changed(s->rows);
}

/* --- one refreshes ---------------------------------------------------------
 */

static struct claim *find_claim(const struct mo_shared_accounts *s,
                                const char *key)
{
    mo_list_each_entry (c, &s->claims, struct claim, node)
        if (strcmp(c->key, key) == 0)
            return c;
    return NULL;
}

static void claim_free(struct claim *c)
{
    mo_timer_stop(c->all->o.loop, &c->unused);
    if (c->lease)
        mo_lease_drop(mo_take_ptr(&c->lease));
    mo_list_del(&c->node);
    mo_free(c);
}

static void end_claim(struct claim *c)
{
    struct mo_shared_accounts *s = c->all;

    claim_free(c);
    free_if_over(s);
}

static void on_unused(struct mo_timer *t)
{
    end_claim(mo_container_of(t, struct claim, unused));
}

static void hold_claim(struct claim *c)
{
    if (c->all->is_closed) {
        end_claim(c);
        return;
    }
    c->state = CLAIM_HELD;
    mo_timer_start(c->all->o.loop, &c->unused, UNUSED_MS);
}

static void on_row(void *ctx, struct mo_span doc, const struct mo_err *why)
{
    struct claim *c = ctx;

    if (!why && doc.n && !c->all->is_closed)
        take_row(c->all, c->key, doc);
    hold_claim(c);
}

static void on_held(void *ctx, struct mo_lease *l, uint64_t fence,
                    const struct mo_err *why)
{
    struct claim *c = ctx;
    struct mo_err e;

    (void)fence;
    c->lease = why ? NULL : l;
    if (why && why->code == MO_EUNAVAIL)
        hold_claim(c);
    else if (why || c->all->is_closed)
        end_claim(c); /* another one has it: who waits asks again */
    else {
        c->state = CLAIM_READING;
        if (mo_shared_rows_read(c->all->rows, KIND, mo_span_cstr(c->key),
                                on_row, c, &e) < 0)
            hold_claim(c);
    }
}

static void on_lost(void *ctx, const struct mo_err *why)
{
    (void)why;
    ((struct claim *)ctx)->lease = NULL;
}

int mo_shared_accounts_claim(struct mo_shared_accounts *s, const char *key)
{
    static const struct mo_lease_cb cb = {on_held, on_lost};
    struct claim *c = find_claim(s, key);
    char name[sizeof(LEASE) + MO_SHA256_HEX];
    struct mo_err e;

    if (s->is_closed)
        return 0;
    if (c && c->state == CLAIM_HELD && !c->given) {
        c->given = true;
        mo_timer_stop(s->o.loop, &c->unused);
        return 0;
    }
    if (c)
        return MO_EBUSY;
    c = mo_new(struct claim);
    if (!c)
        return 0;
    c->all = s;
    (void)snprintf(c->key, sizeof(c->key), "%s", key);
    (void)snprintf(name, sizeof(name), LEASE "%s", key);
    mo_timer_init(&c->unused, on_unused);
    mo_list_push(&s->claims, &c->node);
    if (mo_lease_take(s->o.store, mo_span_cstr(name),
                      mo_span_cstr(s->o.instance), 0, &cb, c, &c->lease,
                      &e) < 0) {
        end_claim(c);
        return 0;
    }
    return MO_EBUSY;
}

static void on_published(void *ctx, const struct mo_err *why)
{
    struct claim *c = ctx;

    if (why && !c->all->is_closed)
        mo_shared_rows_changed(c->all->rows); /* the next round writes it */
    end_claim(c);
}

/* The others get the new token before the lease. */
void mo_shared_accounts_unclaim(struct mo_shared_accounts *s, const char *key)
{
    struct claim *c = find_claim(s, key);
    mo_autobuf struct mo_buf doc = {.max = MO_STORE_DOC_MAX};
    char path[PATH_MAX];
    struct mo_err e;

    if (!c || !c->given)
        return;
    c->state = CLAIM_WRITING;
    if (s->is_closed || !c->lease || put_path(s, key, path) < 0 ||
        put_doc(path, &doc) < 0 ||
        mo_shared_rows_write(s->rows, KIND, mo_span_cstr(key),
                             mo_buf_view(&doc), on_published, c, &e) < 0)
        end_claim(c);
}

bool mo_shared_accounts_are_read(const struct mo_shared_accounts *s)
{
    return mo_shared_rows_are_read(s->rows);
}

/* --- life -------------------------------------------------------------------
 */

int mo_shared_accounts_open(const struct mo_shared_accounts_opts *o,
                            struct mo_shared_accounts **out, struct mo_err *e)
{
    struct mo_shared_accounts *s = mo_new(struct mo_shared_accounts);
    const struct mo_shared_kind kind = {KIND, merge, s};
    int rc;

    if (!s)
        return mo_fail(e, MO_ENOMEM, "connections");
    s->o = *o;
    mo_list_init(&s->claims);
    mo_map_init(&s->changes, CHANGES_MAX);
    rc = mo_shared_rows_open(o->loop, o->store, "connections", &kind, 1,
                             &s->rows, e);
    if (rc < 0) {
        mo_free(s);
        return rc;
    }
    s->o.cfg = mo_config_ref(o->cfg);
    *out = s;
    return 0;
}

void mo_shared_accounts_close(struct mo_shared_accounts *s)
{
    if (!s)
        return;
    s->is_closed = true;
    mo_shared_rows_close(mo_take_ptr(&s->rows));
    mo_list_each_entry_safe (c, &s->claims, struct claim, node) {
        if (c->state == CLAIM_HELD)
            claim_free(c);
        else if (c->state == CLAIM_TAKING && c->lease)
            mo_lease_drop(mo_take_ptr(&c->lease)); /* on_held() follows */
    }
    free_if_over(s);
}
