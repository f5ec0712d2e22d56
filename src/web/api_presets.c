/*
 * api_presets.c - a person's presets: named settings for new conversations; see
 * api.h.
 *
 *   preset:PERSON:ID   {"id","name","model"?,"system"?,"toolsOff"?,"mode"?}
 *
 * PERSON is a part of the SHA-256 of the name, so nobody reads those of others.
 * A preset gives no right: a client sets each part of it in a conversation as a
 * person would, and the rules judge that. Limits: PRESETS_MAX of one person,
 * DOC_MAX bytes.
 */
#include <stdio.h>

#include "agent/chat/about.h"
#include "agent/chat/tools_off.h"
#include "base/rand.h"
#include "codec/sha256.h"
#include "web/api_job.h"

#define DOC_MAX     ((size_t)64 * 1024)
#define PRESETS_MAX 64
#define NAME_BYTES  80
#define MODEL_BYTES 255
#define ID_BYTES    9
#define PERSON_HEX  32
#define PREFIX      "preset:"
#define KEY_MAX     (MO_STORE_ID_MAX + 1)

/* --- what a preset may have -------------------------------------------------
 */

static bool is_line(struct mo_json v, size_t max)
{
    mo_autobuf struct mo_buf b = {.max = 4 * MODEL_BYTES};

    if (!mo_json_is(v, MO_JSON_STRING) || mo_json_str_buf(v, &b) < 0 ||
        b.len > max || mo_span_trim(mo_buf_view(&b)).n == 0)
        return false;
    for (size_t i = 0; i < b.len; i++)
        if ((unsigned char)b.p[i] < ' ' || b.p[i] == 0x7f)
            return false;
    return true;
}

static bool is_system(struct mo_json v)
{
    mo_autobuf struct mo_buf wish = {.max = DOC_MAX}, out = {.max = DOC_MAX};
    struct mo_jw w = mo_jw_object(&wish);
    struct mo_json_doc doc;
    struct mo_err e;

    mo_jw_member_raw(&w, "system", mo_json_text(v));
    mo_jw_end(&w);
    return !mo_buf_err(&wish) &&
           mo_json_parse(mo_buf_view(&wish), 0, &doc, NULL) == 0 &&
           mo_about_change(doc.root, &out, &e) == 0;
}

static bool is_tools_off(struct mo_json v)
{
    if (!mo_json_is(v, MO_JSON_ARRAY) || mo_json_len(v) > MO_TOOLS_OFF_MAX ||
        v.n > MO_TOOLS_OFF_BYTES)
        return false;
    mo_json_each (at, v) {
        struct mo_json tool = mo_json_get(at.val, "tool");

        if (!is_line(mo_json_get(at.val, "server"), MODEL_BYTES) ||
            (tool.p && !is_line(tool, MODEL_BYTES)) ||
            mo_json_len(at.val) != (tool.p ? 2u : 1u))
            return false;
    }
    return true;
}

static bool is_good(struct mo_json key, struct mo_json v)
{
    if (mo_json_str_eq(key, MO_SPAN("name")))
        return is_line(v, NAME_BYTES);
    if (mo_json_str_eq(key, MO_SPAN("model")))
        return is_line(v, MODEL_BYTES);
    if (mo_json_str_eq(key, MO_SPAN("system")))
        return is_system(v);
    if (mo_json_str_eq(key, MO_SPAN("toolsOff")))
        return is_tools_off(v);
    return mo_json_str_eq(key, MO_SPAN("mode")) && mo_chat_mode_named(v) >= 0;
}

/* Writes the preset with these members, which replace those of `old`. */
static int put_preset(const char *id, struct mo_json old, struct mo_json wish,
                      struct mo_buf *out, struct mo_err *e)
{
    static const char *const members[] = {"name", "model", "system", "toolsOff",
                                          "mode"};
    struct mo_jw w = mo_jw_object(out);

    if (!mo_json_is(wish, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL, "the body is an object");
    mo_json_each (at, wish)
        if (!is_good(at.key, at.val))
            return mo_fail(e, MO_EINVAL, "%.*s is not valid in a preset",
                           at.key.n < 40 ? (int)at.key.n : 40, at.key.p);
    mo_jw_member_cstr(&w, "id", id);
    for (size_t i = 0; i < MO_COUNT(members); i++) {
        struct mo_json v = mo_json_get(wish, members[i]);

        if (!v.p)
            v = mo_json_get(old, members[i]);
        if (i == 0 && !v.p)
            return mo_fail(e, MO_EINVAL, "a preset has a name");
        if (v.p)
            mo_jw_member_raw(&w, members[i], mo_json_text(v));
    }
    mo_jw_end(&w);
    return mo_buf_err(out) ? mo_fail(e, MO_EINVAL, "the preset is too long")
                           : 0;
}

/* --- the store --------------------------------------------------------------
 */

static void key_of(const struct mo_req *rq, const char *id, char out[KEY_MAX])
{
    char person[MO_SHA256_HEX + 1];

    mo_sha256_hex(mo_span_cstr(rq->who), person);
    (void)snprintf(out, KEY_MAX, PREFIX "%.*s:%s", PERSON_HEX, person, id);
}

static void on_written(void *ctx, const struct mo_written *w,
                       const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    (void)w;
    if (!why && j->arg.len)
        mo_api_json(j, mo_buf_view(&j->arg), NULL);
    else
        mo_api_done(j, why);
}

/* Stores j->arg as the preset j->id; empty: removes it. */
static void write_preset(struct mo_api_job *j)
{
    struct mo_write w = {.kind = MO_WRITE_MARK, .doc = mo_buf_view(&j->arg)};
    const struct mo_store_batch b = {.writes = &w, .n = 1};
    char key[KEY_MAX];
    struct mo_err e;

    if (j->rq == NULL) {
        mo_api_problem(j, 408, "gone", "nobody waits for it");
        return;
    }
    key_of(j->rq, j->id, key);
    w.id = mo_span_cstr(key);
    if (mo_store_write(j->api->store, &b, on_written, j, &e) < 0)
        mo_api_error(j, &e);
}

/* Reads one preset of the sender; id "": all of them. */
static void read_presets(struct mo_api_job *j, const char *id,
                         void (*done)(void *ctx, const struct mo_rows *rows,
                                      const struct mo_err *why))
{
    struct mo_read r = {.kind = id[0] ? MO_READ_MARK : MO_READ_MARKS,
                        .limit = PRESETS_MAX};
    char key[KEY_MAX];
    struct mo_err e;

    key_of(j->rq, id, key);
    if (id[0])
        r.id = mo_span_cstr(key);
    else
        r.text = mo_span_cstr(key);
    if (mo_store_read(j->api->store, &r, done, j, &e) < 0)
        mo_api_error(j, &e);
}

/* --- requests ---------------------------------------------------------------
 */

static void on_listed(void *ctx, const struct mo_rows *rows,
                      const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_jw w;

    if (why) {
        mo_api_error(j, why);
        return;
    }
    w = mo_jw_object(&j->out);
    mo_jw_member_arr(&w, "presets");
    for (size_t i = 0; i < rows->n; i++)
        mo_jw_raw(&w, rows->v[i].doc);
    mo_jw_end_all(&w);
    mo_api_reply(j, "application/json");
}

static void get_presets(void *ctx, struct mo_req *rq)
{
    struct mo_api_job *j = mo_api_job(ctx, rq);

    if (j)
        read_presets(j, "", on_listed);
}

static void on_counted(void *ctx, const struct mo_rows *rows,
                       const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why)
        mo_api_error(j, why);
    else if (rows->n >= PRESETS_MAX)
        mo_api_problem(j, 409, "too_many",
                       "you have 64 presets; delete one first");
    else
        write_preset(j);
}

static void post_preset(struct mo_req *rq, struct mo_span body)
{
    static const struct mo_json none = {NULL, 0};
    struct mo_api_job *j = mo_api_job(rq->data, rq);
    struct mo_json_doc doc;
    struct mo_err e;

    if (!j)
        return;
    mo_random_token(j->id, ID_BYTES);
    j->status = 201;
    if (mo_json_parse(body, 0, &doc, &e) < 0 ||
        put_preset(j->id, none, doc.root, &j->arg, &e) < 0)
        mo_api_problem(j, 400, "bad_request", e.msg);
    else
        read_presets(j, "", on_counted);
}

/* The change is in j->text. */
static void on_old(void *ctx, const struct mo_rows *rows,
                   const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_json_doc old, wish;
    struct mo_err e;

    if (why)
        mo_api_error(j, why);
    else if (rows->n == 0 || mo_json_parse(rows->v[0].doc, 0, &old, &e) < 0)
        mo_api_problem(j, 404, "not_found", "you have no such preset");
    else if (j->text.len == 0)
        write_preset(j);
    else if (mo_json_parse(mo_buf_view(&j->text), 0, &wish, &e) < 0 ||
             put_preset(j->id, old.root, wish.root, &j->arg, &e) < 0)
        mo_api_problem(j, 400, "bad_request", e.msg);
    else
        write_preset(j);
}

/* body: the change; empty: the preset is removed. */
static void change_preset(struct mo_api *api, struct mo_req *rq,
                          struct mo_span body)
{
    struct mo_span id = mo_req_segment(rq, 2);
    struct mo_api_job *j = mo_api_job(api, rq);

    if (!j)
        return;
    if (id.n != MO_TOKEN_LEN(ID_BYTES) || !mo_span_only(id, MO_ALNUM "_-")) {
        mo_api_problem(j, 404, "not_found", "you have no such preset");
        return;
    }
    memcpy(j->id, id.p, id.n);
    if (mo_buf_span(&j->text, body) < 0)
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else
        read_presets(j, j->id, on_old);
}

static void patch_preset(struct mo_req *rq, struct mo_span body)
{
    change_preset(rq->data, rq, body.n ? body : MO_SPAN("null"));
}

static void delete_preset(void *ctx, struct mo_req *rq)
{
    change_preset(ctx, rq, MO_SPAN(""));
}

int mo_api_presets_routes(struct mo_site *s, struct mo_api *api)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/presets", 0, get_presets},
        {MO_HTTP_POST, "/api/presets", 0, .body = post_preset, .max = DOC_MAX},
        {MO_HTTP_PATCH, "/api/presets/{id}", 0, .body = patch_preset,
         .max = DOC_MAX},
        {MO_HTTP_DELETE, "/api/presets/{id}", 0, delete_preset},
    };

    return mo_site_add(s, routes, MO_COUNT(routes), api);
}
