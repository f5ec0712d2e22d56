/*
 * api_links.c - links by which everybody reads a conversation as it was when
 * the link was made; see api.h and docs/sharing.md.
 *
 * A link is a random token. The store has its SHA-256 only:
 *
 *   share-link:SHA256        {"session","id"}
 *   share-links:SESSION:ID   {"id","session","owner","created","conversation",
 *                             "upTo","title","at","by","expires"?,"hash"}
 *
 * Entries are only ever appended, so the number of the last one (upTo) is all
 * that a frozen view needs. The page is a transcript (transcript.h) without any
 * script: whoever reads it has no session here and reaches nothing else. A link
 * ends with its conversation: a new one under the same id was created at
 * another time. A change is in the audit log before it happens. A token that is
 * not known counts like a wrong one at the sign-in (mo_site_strike()).
 *
 * Limits: LINKS_MAX of a conversation, DAYS_MAX days.
 */
#include <stdio.h>

#include "base/rand.h"
#include "codec/sha256.h"
#include "web/api_export.h"

#define BODY_MAX    ((size_t)1024)
#define DOC_MAX     ((size_t)4096)
#define LINKS_MAX   32
#define DAYS_MAX    365
#define DAY_MS      ((uint64_t)24 * 3600 * 1000)
#define TOKEN_BYTES 24
#define ID_BYTES    9
#define BY_HASH     "share-link:"
#define BY_SESSION  "share-links:"
#define KEY_MAX     (MO_STORE_ID_MAX + 1)

struct mo_api_link { /* of a job */
    char token[MO_TOKEN_LEN(TOKEN_BYTES) + 1];
    char hash[MO_SHA256_HEX + 1];
    char id[MO_TOKEN_LEN(ID_BYTES) + 1];
    uint64_t created, conversation, up_to, expires, at;
    char title[MO_TITLE_MAX + 1];
};

void mo_api_link_free(struct mo_api_link *l)
{
    if (l)
        explicit_bzero(l->token, sizeof(l->token));
    mo_free(l);
}

/* --- whether there may be any ----------------------------------------------
 */

/* Where several people sign in, only the operator can decide that strangers may
 * read what they share. A person alone is the operator. */
static bool is_allowed(const struct mo_api *api)
{
    const struct mo_config *c = api->config->now;

    if (mo_config_origin(c, &c->server.share_links))
        return c->server.share_links;
    return c->server.tokens.n == 0 && c->people.providers.n == 0;
}

static const char *name_of(const struct mo_api_job *j)
{
    return j->rq->who[0] ? j->rq->who : "operator";
}

static void key_of_hash(const char *hash, char out[KEY_MAX])
{
    (void)snprintf(out, KEY_MAX, BY_HASH "%s", hash);
}

static void key_of_link(const char *session, const char *id, char out[KEY_MAX])
{
    (void)snprintf(out, KEY_MAX, BY_SESSION "%s:%s", session, id);
}

static void read_store(struct mo_api_job *j, const struct mo_read *r,
                       void (*done)(void *ctx, const struct mo_rows *rows,
                                    const struct mo_err *why))
{
    struct mo_err e;

    if (mo_store_read(j->api->store, r, done, j, &e) < 0)
        mo_api_error(j, &e);
}

/* --- the audit log ---------------------------------------------------------
 */

static void audit(struct mo_api_job *j, const char *action, mo_done_fn *done)
{
    const struct mo_audit_row row = {
        .event = "kind",
        .subject = MO_SPAN("share-link"),
        .name = mo_span_cstr(j->link->id),
        .action = action,
        .session = mo_span_cstr(j->id),
        .decided_by = name_of(j),
        .via = j->rq->door,
    };
    struct mo_err e;

    if (mo_audit_first(mo_approvals_audit(j->api->approvals), &row, done, j,
                       &e) < 0)
        mo_api_error(j, &e);
}

/* --- a new one --------------------------------------------------------------
 */

static void put_link(struct mo_jw *w, const struct mo_api_link *l,
                     const char *by)
{
    mo_jw_member_cstr(w, "id", l->id);
    mo_jw_member_u64(w, "at", l->at);
    mo_jw_member_cstr(w, "by", by);
    if (l->expires)
        mo_jw_member_u64(w, "expires", l->expires);
}

static void on_made(void *ctx, const struct mo_written *written,
                    const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    char path[sizeof(j->link->token) + sizeof("/shared/")];
    struct mo_jw w;

    (void)written;
    if (why) {
        mo_api_error(j, why);
        return;
    }
    w = mo_jw_object(&j->out);
    put_link(&w, j->link, mo_buf_cstr(&j->owner));
    (void)snprintf(path, sizeof(path), "/shared/%s", j->link->token);
    mo_jw_member_cstr(&w, "path", path);
    mo_jw_end(&w);
    j->status = 201;
    mo_api_reply(j, "application/json");
    explicit_bzero(path, sizeof(path));
}

static void put_row(struct mo_api_job *j, struct mo_buf *b)
{
    const struct mo_api_link *l = j->link;
    struct mo_jw w = mo_jw_object(b);

    put_link(&w, l, mo_buf_cstr(&j->owner));
    mo_jw_member_cstr(&w, "session", j->id);
    mo_jw_member_u64(&w, "created", l->created);
    mo_jw_member_u64(&w, "conversation", l->conversation);
    mo_jw_member_u64(&w, "upTo", l->up_to);
    mo_jw_member_opt(&w, "title", mo_span_cstr(l->title));
    mo_jw_member_cstr(&w, "hash", l->hash);
    mo_jw_end(&w);
}

static void put_pointer(const struct mo_api_job *j, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "session", j->id);
    mo_jw_member_cstr(&w, "id", j->link->id);
    mo_jw_end(&w);
}

/* Writes or removes both rows. */
static int write_rows(struct mo_api_job *j, bool is_new,
                      void (*done)(void *ctx, const struct mo_written *w,
                                   const struct mo_err *why),
                      struct mo_err *e)
{
    mo_autobuf struct mo_buf row = {.max = DOC_MAX}, pointer = {.max = DOC_MAX};
    char by_hash[KEY_MAX], by_id[KEY_MAX];
    struct mo_write v[] = {{.kind = MO_WRITE_MARK}, {.kind = MO_WRITE_MARK}};
    const struct mo_store_batch b = {.writes = v, .n = MO_COUNT(v)};

    key_of_hash(j->link->hash, by_hash);
    key_of_link(j->id, j->link->id, by_id);
    v[0].id = mo_span_cstr(by_hash);
    v[1].id = mo_span_cstr(by_id);
    if (is_new) {
        put_row(j, &row);
        put_pointer(j, &pointer);
        v[0].doc = mo_buf_view(&pointer);
        v[1].doc = mo_buf_view(&row);
    }
    mo_buf_pass_err(&row, &pointer);
    if (mo_buf_err(&row))
        return mo_fail(e, mo_buf_err(&row), "the link");
    return mo_store_write(j->api->store, &b, done, j, e);
}

static void on_make_audited(void *ctx, const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_err e;

    if (why)
        mo_api_error(j, why);
    else if (write_rows(j, true, on_made, &e) < 0)
        mo_api_error(j, &e);
}

static void on_counted(void *ctx, const struct mo_rows *rows,
                       const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_api_link *l = j->link;

    if (why) {
        mo_api_error(j, why);
    } else if (rows->n >= LINKS_MAX) {
        mo_api_problem(j, 409, "too_many",
                       "this conversation has 32 links; withdraw one first");
    } else if (j->rq == NULL) {
        mo_api_problem(j, 408, "gone", "nobody waits for it");
    } else {
        mo_random_token(l->token, TOKEN_BYTES);
        mo_random_token(l->id, ID_BYTES);
        mo_sha256_hex(mo_span_cstr(l->token), l->hash);
        (void)mo_buf_puts(&j->owner, name_of(j));
        audit(j, "made", on_make_audited);
    }
}

/* Reads the links of the session; prefix lasts as long as the job. */
static void read_links(struct mo_api_job *j,
                       void (*done)(void *ctx, const struct mo_rows *rows,
                                    const struct mo_err *why))
{
    struct mo_read r = {.kind = MO_READ_MARKS, .limit = LINKS_MAX};

    mo_buf_reset(&j->text);
    (void)mo_buf_printf(&j->text, BY_SESSION "%s:", j->id);
    r.text = mo_buf_view(&j->text);
    if (mo_buf_err(&j->text))
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else
        read_store(j, &r, done);
}

static void on_last_entry(void *ctx, const struct mo_rows *rows,
                          const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why) {
        mo_api_error(j, why);
    } else if (rows->n == 0) {
        mo_api_problem(j, 409, "empty", "nothing has been said in it yet");
    } else {
        j->link->conversation = rows->v[0].conversation;
        j->link->up_to = rows->v[0].seq;
        read_links(j, on_counted);
    }
}

static void on_session(void *ctx, const struct mo_rows *rows,
                       const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    const struct mo_read r = {.kind = MO_READ_HISTORY,
                              .session = mo_span_cstr(j->id),
                              .limit = 1,
                              .newest = true};
    struct mo_session_row row = {.created = 0};
    struct mo_json_doc doc;

    if (why) {
        mo_api_error(j, why);
    } else if (rows->n == 0 || mo_session_row(rows->v[0].doc, &row, NULL) < 0 ||
               mo_json_parse(rows->v[0].doc, 0, &doc, NULL) < 0) {
        mo_api_problem(j, 404, "not_found", "there is no such session");
    } else {
        j->link->created = row.created;
        (void)mo_json_str_copy(
            mo_json_get(mo_json_get(doc.root, "data"), "title"), j->link->title,
            sizeof(j->link->title));
        read_store(j, &r, on_last_entry);
    }
}

static void make_link(struct mo_api_job *j)
{
    const struct mo_read r = {.kind = MO_READ_SESSION,
                              .session = mo_span_cstr(j->id)};

    read_store(j, &r, on_session);
}

/* --- the list, and withdrawing ----------------------------------------------
 */

static void on_listed(void *ctx, const struct mo_rows *rows,
                      const struct mo_err *why)
{
    static const char *const shown[] = {"id", "at", "by", "expires"};
    struct mo_api_job *j = ctx;
    struct mo_jw w;

    if (why) {
        mo_api_error(j, why);
        return;
    }
    w = mo_jw_object(&j->out);
    mo_jw_member_bool(&w, "allowed", is_allowed(j->api));
    mo_jw_member_arr(&w, "links");
    for (size_t i = 0; i < rows->n; i++) {
        struct mo_json_doc doc;

        if (mo_json_parse(rows->v[i].doc, 0, &doc, NULL) < 0)
            continue;
        mo_jw_obj(&w);
        for (size_t k = 0; k < MO_COUNT(shown); k++)
            if (mo_json_get(doc.root, shown[k]).p)
                mo_jw_copy(&w, doc.root, shown[k]);
        mo_jw_end(&w);
    }
    mo_jw_end_all(&w);
    mo_api_reply(j, "application/json");
}

static void list_links(struct mo_api_job *j)
{
    read_links(j, on_listed);
}

static void on_withdrawn(void *ctx, const struct mo_written *w,
                         const struct mo_err *why)
{
    (void)w;
    mo_api_done(ctx, why);
}

static void on_withdraw_audited(void *ctx, const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_err e;

    if (why)
        mo_api_error(j, why);
    else if (write_rows(j, false, on_withdrawn, &e) < 0)
        mo_api_error(j, &e);
}

/* False: it is no row of a link. */
static bool take_link(struct mo_api_link *l, const struct mo_rows *rows)
{
    struct mo_json_doc doc;

    if (rows->n == 0 || mo_json_parse(rows->v[0].doc, 0, &doc, NULL) < 0)
        return false;
    (void)mo_json_u64(mo_json_get(doc.root, "created"), &l->created);
    (void)mo_json_u64(mo_json_get(doc.root, "conversation"), &l->conversation);
    (void)mo_json_u64(mo_json_get(doc.root, "expires"), &l->expires);
    (void)mo_json_str_copy(mo_json_get(doc.root, "title"), l->title,
                           sizeof(l->title));
    return mo_json_u64(mo_json_get(doc.root, "upTo"), &l->up_to) == 0 &&
           mo_json_str_copy(mo_json_get(doc.root, "hash"), l->hash,
                            sizeof(l->hash)) == 0;
}

static void on_found(void *ctx, const struct mo_rows *rows,
                     const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why)
        mo_api_error(j, why);
    else if (!take_link(j->link, rows))
        mo_api_problem(j, 404, "not_found", "there is no such link");
    else if (j->rq == NULL)
        mo_api_problem(j, 408, "gone", "nobody waits for it");
    else
        audit(j, "withdrawn", on_withdraw_audited);
}

/* Reads the row of j->link->id. */
static void read_link(struct mo_api_job *j,
                      void (*done)(void *ctx, const struct mo_rows *rows,
                                   const struct mo_err *why))
{
    struct mo_read r = {.kind = MO_READ_MARK};
    char key[KEY_MAX];

    key_of_link(j->id, j->link->id, key);
    r.id = mo_span_cstr(key);
    read_store(j, &r, done);
}

static void withdraw_link(struct mo_api_job *j)
{
    read_link(j, on_found);
}

/* --- reading without signing in ---------------------------------------------
 */

/* The answer to every link that is not valid; html, for people. */
static void refuse(struct mo_api_job *j)
{
    static const char note[] =
        "{\"role\":\"note\",\"text\":\"This link does not exist, has expired "
        "or "
        "was withdrawn. Ask the person who sent it for a new one.\"}";
    struct mo_json_doc doc;

    mo_transcript_begin(&j->out, MO_TRANSCRIPT_HTML,
                        MO_SPAN("No such conversation"));
    if (mo_json_parse(mo_span_cstr(note), 0, &doc, NULL) == 0)
        mo_transcript_entry(&j->out, MO_TRANSCRIPT_HTML, doc.root);
    mo_transcript_end(&j->out, MO_TRANSCRIPT_HTML);
    j->status = 404;
    mo_api_export_headers(j);
    mo_api_reply(j, "text/html; charset=utf-8");
}

/* A token that nobody was given: guesses are slowed down. */
static void refuse_guess(struct mo_api_job *j)
{
    struct mo_refusal no;

    if (j->rq)
        mo_site_note_refused(j->api->site, j->rq, "link_unknown", "link");
    if (j->rq && !mo_site_strike(j->api->site, j->rq, &no))
        mo_api_problem(j, no.status, no.code, no.detail);
    else
        refuse(j);
}

static void on_shown_session(void *ctx, const struct mo_rows *rows,
                             const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_session_row row = {.created = 0};
    const struct mo_api_link *l = j->link;

    if (why)
        mo_api_error(j, why);
    else if (rows->n == 0 || mo_session_row(rows->v[0].doc, &row, NULL) < 0 ||
             row.created != l->created)
        refuse(j); /* the conversation was deleted */
    else
        mo_api_export_frozen(j, l->conversation, l->up_to,
                             mo_span_cstr(l->title));
}

static void on_link(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    const struct mo_read r = {.kind = MO_READ_SESSION,
                              .session = mo_span_cstr(j->id)};
    char hash[sizeof(j->link->hash)];

    memcpy(hash, j->link->hash, sizeof(hash));
    if (why)
        mo_api_error(j, why);
    else if (!take_link(j->link, rows) || strcmp(hash, j->link->hash) != 0)
        refuse_guess(j);
    else if (j->link->expires && j->link->expires <= mo_wall_ms())
        refuse(j);
    else
        read_store(j, &r, on_shown_session);
}

static void on_pointer(void *ctx, const struct mo_rows *rows,
                       const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_json_doc doc;

    if (why)
        mo_api_error(j, why);
    else if (rows->n == 0 || mo_json_parse(rows->v[0].doc, 0, &doc, NULL) < 0 ||
             mo_json_str_copy(mo_json_get(doc.root, "session"), j->id,
                              sizeof(j->id)) < 0 ||
             mo_json_str_copy(mo_json_get(doc.root, "id"), j->link->id,
                              sizeof(j->link->id)) < 0)
        refuse_guess(j);
    else
        read_link(j, on_link);
}

/* NULL: answered. */
static struct mo_api_job *with_link(struct mo_api_job *j)
{
    if (!j)
        return NULL;
    j->link = mo_new(struct mo_api_link);
    if (j->link)
        return j;
    mo_api_problem(j, 503, "no_memory", "out of memory");
    return NULL;
}

static void open_link(void *ctx, struct mo_req *rq)
{
    struct mo_span token = mo_req_segment(rq, 1);
    struct mo_api_job *j = with_link(mo_api_job(ctx, rq));
    struct mo_read r = {.kind = MO_READ_MARK};
    char key[KEY_MAX];

    if (!j)
        return;
    if (!is_allowed(ctx)) {
        refuse(j);
        return;
    }
    if (token.n != MO_TOKEN_LEN(TOKEN_BYTES)) {
        refuse_guess(j);
        return;
    }
    mo_sha256_hex(token, j->link->hash);
    key_of_hash(j->link->hash, key);
    r.id = mo_span_cstr(key);
    read_store(j, &r, on_pointer);
}

/* --- requests ---------------------------------------------------------------
 */

static void on_list(void *ctx, struct mo_req *rq)
{
    struct mo_api_job *j = mo_api_session_job(ctx, rq);

    if (j)
        mo_api_if_mine(j, list_links);
}

static void on_withdraw(void *ctx, struct mo_req *rq)
{
    struct mo_api_job *j = with_link(mo_api_session_job(ctx, rq));
    struct mo_span id = mo_req_segment(rq, 4);

    if (!j)
        return;
    if (id.n >= sizeof(j->link->id) || !mo_span_only(id, MO_ALNUM "_-")) {
        mo_api_problem(j, 404, "not_found", "there is no such link");
        return;
    }
    memcpy(j->link->id, id.p, id.n);
    mo_api_if_mine(j, withdraw_link);
}

static void on_make(struct mo_req *rq, struct mo_span body)
{
    struct mo_api_job *j = with_link(mo_api_session_job(rq->data, rq));
    struct mo_json_doc doc;
    struct mo_json days;
    uint64_t n = 0;

    if (!j)
        return;
    if (!is_allowed(j->api)) {
        mo_api_problem(j, 403, "links_off",
                       "the operator has not allowed links "
                       "(server.shareLinks); share with people instead");
        return;
    }
    if (mo_json_parse(body, 0, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_OBJECT)) {
        mo_api_problem(j, 400, "bad_request", "the body is {days?}");
        return;
    }
    days = mo_json_get(doc.root, "days");
    if (days.p && (mo_json_u64(days, &n) < 0 || n < 1 || n > DAYS_MAX)) {
        mo_api_problem(j, 400, "bad_request", "days is 1 to 365");
        return;
    }
    j->link->at = mo_wall_ms();
    j->link->expires = n ? j->link->at + n * DAY_MS : 0;
    mo_api_if_mine(j, make_link);
}

int mo_api_links_routes(struct mo_site *s, struct mo_api *api)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/sessions/{id}/links", 0, on_list},
        {MO_HTTP_POST, "/api/sessions/{id}/links", 0, .body = on_make,
         .max = BODY_MAX},
        {MO_HTTP_DELETE, "/api/sessions/{id}/links/{link}", 0, on_withdraw},
        {MO_HTTP_GET, "/shared/{token}", 0, open_link},
    };

    api->site = s;
    return mo_site_add(s, routes, MO_COUNT(routes), api);
}
