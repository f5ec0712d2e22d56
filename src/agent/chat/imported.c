/* imported.c - see imported.h. */
#include "agent/chat/imported.h"

#include "base/mem.h"
#include "mcp/content.h"

#define DEPTH_MAX      128
#define LINE_MAX_BYTES 256 /* bytes of a name or an id */
#define KEY_MAX        31  /* bytes of a call's key, as MO_LLM_KEY_MAX */
#define CALLS_MAX      64
#define SEQ_MAX        ((uint64_t)1 << 53)

/* --- members ---------------------------------------------------------------
 *
 * One table per kind of object says which members it may have. */

enum kind {
    TEXT,
    NAME, /* one line, not empty, at most LINE_MAX_BYTES bytes */
    KEY,
    NUMBER,
    FLAG,
    OBJECT,  /* any object: arguments of a call */
    CONTENT, /* MCP content: objects with a type */
    SAID,    /* blocks of a person or a summary */
    ANSWER,  /* blocks of a model */
    RESULTS,
    MODEL, /* an object: which model answered */
    USAGE,
    TOOL_TOKENS,
    STATE,
    ROLE,
    TIMES,
    DROPPED, /* not taken over: an app, the calls of scripts */
};

struct member {
    const char *name;
    enum kind kind;
    bool needed;
};

#define MEMBERS_MAX 16
#define LIST(table) table, MO_COUNT(table)
#define PLACE                                                                  \
    {"seq", NUMBER, true}, {"at", NUMBER, true},                               \
    {                                                                          \
        "role", ROLE, true                                                     \
    }

static const struct member user_members[] = {
    PLACE,
    {"id", NAME, false},
    {"by", NAME, false},
    {"auto", FLAG, false},
    {"blocks", SAID, true},
};
static const struct member assistant_members[] = {
    PLACE,
    {"by", MODEL, false},
    {"blocks", ANSWER, true},
    {"stop", NAME, true},
    {"placeholder", FLAG, false},
    {"usage", USAGE, false},
    {"toolTokens", TOOL_TOKENS, false},
};
static const struct member tool_members[] = {
    PLACE,
    {"results", RESULTS, true},
    {"scripts", DROPPED, false},
};
static const struct member note_members[] = {
    PLACE,
    {"code", NAME, true},
    {"text", TEXT, true},
    {"model", NAME, false},
};
static const struct member summary_members[] = {
    PLACE,
    {"until", NUMBER, true},
    {"turns", NUMBER, false},
    {"made", NAME, false},
    {"blocks", SAID, true},
};
static const struct member branch_members[] = {PLACE, {"to", NUMBER, true}};
static const struct member text_members[] = {
    {"type", NAME, true},
    {"text", TEXT, true},
};
/* Without its bytes, as it is exported. */
static const struct member image_members[] = {
    {"type", NAME, true},      {"path", NAME, false}, {"size", NUMBER, false},
    {"mimeType", NAME, false}, {"left", NAME, false},
};
static const struct member call_members[] = {
    {"type", NAME, true}, {"key", KEY, true},     {"id", NAME, false},
    {"name", NAME, true}, {"args", OBJECT, true}, {"bad", TEXT, false},
};
static const struct member result_members[] = {
    {"key", KEY, true},      {"id", NAME, false},
    {"name", NAME, true},    {"isError", FLAG, true},
    {"state", STATE, false}, {"content", CONTENT, true},
    {"app", DROPPED, false}, {"times", TIMES, false},
};
static const struct member times_members[] = {
    {"asked", NUMBER, false},   {"decided", NUMBER, false},
    {"began", NUMBER, false},   {"ended", NUMBER, false},
    {"routeUs", NUMBER, false}, {"boxMs", NUMBER, false},
};
static const struct member model_members[] = {
    {"provider", NAME, true},
    {"model", NAME, true},
    {"url", NAME, false},
    {"base", NAME, false},
};
static const struct member usage_members[] = {
    {"input", NUMBER, false},
    {"output", NUMBER, false},
    {"cacheRead", NUMBER, false},
    {"cacheWrite", NUMBER, false},
};

static const struct member tool_tokens_members[] = {
    {"sent", NUMBER, true},
    {"plain", NUMBER, true},
};

static int check_object(struct mo_json v, const char *what,
                        const struct member *m, size_t n, struct mo_err *e);

static bool is_line(struct mo_json v, size_t max)
{
    mo_autobuf struct mo_buf b = {.max = 4 * LINE_MAX_BYTES};

    if (!mo_json_is(v, MO_JSON_STRING) || mo_json_str_buf(v, &b) < 0 ||
        b.len == 0 || b.len > max)
        return false;
    for (size_t i = 0; i < b.len; i++)
        if ((unsigned char)b.p[i] < ' ' || b.p[i] == 0x7f)
            return false;
    return true;
}

static bool is_key(struct mo_json v)
{
    return is_line(v, KEY_MAX) &&
           mo_span_only(mo_span(v.p + 1, v.n - 2), MO_ALNUM "_-");
}

static int check_said(struct mo_json v, struct mo_err *e)
{
    mo_json_each (at, v) {
        struct mo_json type = mo_json_get(at.val, "type");
        int rc;

        if (mo_json_str_eq(type, MO_SPAN("text")))
            rc = check_object(at.val, "a block", LIST(text_members), e);
        else if (mo_json_str_eq(type, MO_SPAN("image")))
            rc = check_object(at.val, "an image", LIST(image_members), e);
        else
            rc = mo_fail(e, MO_EINVAL, "a block is no text and no image");
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int check_answer(struct mo_json v, struct mo_err *e)
{
    static const char *const plain[] = {"text", "thinking", NULL};

    mo_json_each (at, v) {
        struct mo_json type = mo_json_get(at.val, "type");
        int rc;

        if (mo_json_str_in(type, plain))
            rc = check_object(at.val, "a block", LIST(text_members), e);
        else if (mo_json_str_eq(type, MO_SPAN("call")))
            rc = check_object(at.val, "a call", LIST(call_members), e);
        else
            rc = mo_fail(e, MO_EINVAL, "a block is of an unknown type");
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int check_results(struct mo_json v, struct mo_err *e)
{
    mo_json_each (at, v)
        if (check_object(at.val, "a result", LIST(result_members), e) < 0)
            return e->code;
    return 0;
}

static bool is_content(struct mo_json v)
{
    mo_json_each (at, v)
        if (!mo_json_is(at.val, MO_JSON_OBJECT) ||
            !is_line(mo_json_get(at.val, "type"), LINE_MAX_BYTES))
            return false;
    return mo_json_is(v, MO_JSON_ARRAY);
}

static bool is_number(struct mo_json v)
{
    uint64_t n = 0;

    return mo_json_u64(v, &n) == 0 && n < SEQ_MAX;
}

/* Values that need no table. */
static bool is_of_kind(enum kind kind, struct mo_json v)
{
    static const char *const states[] = {"done", "rejected", "unknown", NULL};

    switch (kind) {
    case TEXT:
    case ROLE:
        return mo_json_is(v, MO_JSON_STRING);
    case NAME:
        return is_line(v, LINE_MAX_BYTES);
    case KEY:
        return is_key(v);
    case NUMBER:
        return is_number(v);
    case FLAG:
        return mo_json_is(v, MO_JSON_BOOL);
    case DROPPED:
        return true;
    case OBJECT:
    case MODEL:
    case TIMES:
    case USAGE:
    case TOOL_TOKENS:
        return mo_json_is(v, MO_JSON_OBJECT);
    case CONTENT:
        return is_content(v);
    case STATE:
        return mo_json_str_in(v, states);
    default:
        return mo_json_is(v, MO_JSON_ARRAY);
    }
}

static int check_value(const struct member *m, struct mo_json v,
                       struct mo_err *e)
{
    if (!is_of_kind(m->kind, v))
        return mo_fail(e, MO_EINVAL, "\"%s\" is not valid", m->name);
    switch (m->kind) {
    case SAID:
        return check_said(v, e);
    case ANSWER:
        return check_answer(v, e);
    case RESULTS:
        return check_results(v, e);
    case MODEL:
        return check_object(v, "\"by\"", LIST(model_members), e);
    case USAGE:
        return check_object(v, "\"usage\"", LIST(usage_members), e);
    case TOOL_TOKENS:
        return check_object(v, "\"toolTokens\"", LIST(tool_tokens_members), e);
    case TIMES:
        return check_object(v, "\"times\"", LIST(times_members), e);
    default:
        return 0;
    }
}

static size_t find_member(struct mo_json key, const struct member *m, size_t n)
{
    size_t i = 0;

    while (i < n && !mo_json_str_eq(key, mo_span_cstr(m[i].name)))
        i++;
    return i;
}

static int check_object(struct mo_json v, const char *what,
                        const struct member *m, size_t n, struct mo_err *e)
{
    bool seen[MEMBERS_MAX] = {false};

    MO_BUG_ON(n > MEMBERS_MAX);
    mo_json_each (at, v) {
        size_t i = find_member(at.key, m, n);
        int len = at.key.n < 64 ? (int)at.key.n : 64;

        if (i == n)
            return mo_fail(e, MO_EINVAL, "%s has the unknown member %.*s", what,
                           len, at.key.p);
        if (seen[i])
            return mo_fail(e, MO_EINVAL, "%s has \"%s\" twice", what,
                           m[i].name);
        seen[i] = true;
        if (check_value(&m[i], at.val, e) < 0)
            return e->code;
    }
    for (size_t i = 0; i < n; i++)
        if (m[i].needed && !seen[i])
            return mo_fail(e, MO_EINVAL, "%s has no \"%s\"", what, m[i].name);
    return 0;
}

static int check_shape(struct mo_json v, enum mo_entry_role role,
                       struct mo_err *e)
{
    static const struct {
        const struct member *v;
        size_t n;
    } tables[] = {
        [MO_ENTRY_USER] = {LIST(user_members)},
        [MO_ENTRY_ASSISTANT] = {LIST(assistant_members)},
        [MO_ENTRY_TOOL] = {LIST(tool_members)},
        [MO_ENTRY_NOTE] = {LIST(note_members)},
        [MO_ENTRY_SUMMARY] = {LIST(summary_members)},
        [MO_ENTRY_BRANCH] = {LIST(branch_members)},
    };

    if (role >= MO_COUNT(tables) || !tables[role].n)
        return mo_fail(e, MO_EINVAL, "its role is not known");
    return check_object(v, "it", tables[role].v, tables[role].n, e);
}

/* --- order ---------------------------------------------------------------- */

/* The entry with that number in the file, from 1; 0: there is none. */
static size_t find_seq(const struct mo_imported *im, uint64_t seq, bool exact)
{
    size_t lo = 0, hi = im->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (im->v[mid].seq <= seq)
            lo = mid + 1;
        else
            hi = mid;
    }
    return exact && (lo == 0 || im->v[lo - 1].seq != seq) ? 0 : lo;
}

static size_t count_calls(struct mo_json entry)
{
    struct mo_entry_call call;
    struct mo_json_iter it;
    size_t n = 0;

    mo_entry_calls(&it, entry);
    while (mo_entry_next_call(&it, &call))
        n++;
    return n;
}

static size_t count_key(struct mo_json list, struct mo_json key)
{
    size_t n = 0;

    mo_json_each (at, list) {
        struct mo_json k = mo_json_get(at.val, "key");

        n += k.n == key.n && memcmp(k.p, key.p, k.n) == 0;
    }
    return n;
}

/* Every call has one result, and every result is of one call. */
static bool is_answered(struct mo_json calls, struct mo_json results)
{
    struct mo_entry_call call;
    struct mo_json_iter it;
    size_t n = 0;

    mo_entry_calls(&it, calls);
    while (mo_entry_next_call(&it, &call)) {
        if (count_key(results, call.key) != 1)
            return false;
        n++;
    }
    return n == mo_json_len(results);
}

static const struct mo_imported_entry *tip_of(const struct mo_imported *im)
{
    return im->tip ? &im->v[im->tip - 1] : NULL;
}

static int take_branch(struct mo_imported *im, struct mo_imported_entry *en,
                       struct mo_err *e)
{
    const struct mo_imported_entry *to = NULL;
    uint64_t seq = 0;
    size_t i;

    (void)mo_json_u64(mo_json_get(en->doc, "to"), &seq);
    i = seq ? find_seq(im, seq, true) : 0;
    if (i)
        to = &im->v[i - 1];
    if (seq && (!to || to->role == MO_ENTRY_BRANCH))
        return mo_fail(e, MO_EINVAL,
                       "it goes on at an entry that is not there");
    if (to && to->has_calls)
        return mo_fail(e, MO_EINVAL,
                       "it goes on between a call and its result");
    en->before = im->tip;
    im->tip = i;
    return 0;
}

/* Notes and summaries stand where they were written, also before results. */
static int take_place(struct mo_imported *im, struct mo_imported_entry *en,
                      struct mo_err *e)
{
    const struct mo_imported_entry *tip = tip_of(im);
    bool open = tip && tip->has_calls;
    size_t ncalls = 0;

    if (en->role == MO_ENTRY_ASSISTANT)
        ncalls = count_calls(en->doc);
    if (ncalls > CALLS_MAX)
        return mo_fail(e, MO_EINVAL, "it has more than %d calls", CALLS_MAX);
    if (en->role == MO_ENTRY_TOOL) {
        const struct mo_imported_entry *of = tip;

        while (of && of->role != MO_ENTRY_ASSISTANT && of->before)
            of = &im->v[of->before - 1];
        if (!open || !is_answered(of->doc, mo_json_get(en->doc, "results")))
            return mo_fail(e, MO_EINVAL,
                           "its results do not belong to the calls before it");
    } else if (open && mo_entry_for_model(en->role)) {
        return mo_fail(e, MO_EINVAL, "the calls before it have no results");
    }
    en->has_calls = ncalls > 0 || (open && !mo_entry_for_model(en->role));
    en->before = im->tip;
    im->tip = im->n + 1;
    return 0;
}

static int grow(struct mo_imported *im, struct mo_err *e)
{
    size_t cap = im->cap ? 2 * im->cap : 64;
    struct mo_imported_entry *v;

    if (im->n < im->cap)
        return 0;
    if (im->n >= MO_IMPORTED_ENTRIES)
        return mo_fail(e, MO_EINVAL, "there are more than %d entries",
                       MO_IMPORTED_ENTRIES);
    v = mo_realloc(im->v, cap * sizeof(*v));
    if (!v)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    im->v = v;
    im->cap = cap;
    return 0;
}

static int take_entry(struct mo_imported *im, struct mo_json v,
                      struct mo_err *e)
{
    struct mo_imported_entry en = {.doc = v, .role = mo_entry_role(v)};
    uint64_t last = im->n ? im->v[im->n - 1].seq : 0;
    int rc = grow(im, e);

    if (rc < 0)
        return rc;
    if (!mo_json_is(v, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL, "it is no object");
    if (v.n > MO_STORE_DOC_MAX)
        return mo_fail(e, MO_EINVAL, "it has more than 4 MiB");
    rc = check_shape(v, en.role, e);
    if (rc < 0)
        return rc;
    (void)mo_json_u64(mo_json_get(v, "seq"), &en.seq);
    (void)mo_json_u64(mo_json_get(v, "at"), &en.at);
    if (en.seq <= last)
        return mo_fail(e, MO_EINVAL, "its seq does not follow the one before");
    rc = en.role == MO_ENTRY_BRANCH ? take_branch(im, &en, e)
                                    : take_place(im, &en, e);
    if (rc < 0)
        return rc;
    if (en.role == MO_ENTRY_USER && en.at > im->said)
        im->said = en.at;
    im->v[im->n++] = en;
    return 0;
}

/* --- the whole file --------------------------------------------------------
 */

static int take_head(struct mo_json root, struct mo_imported *im,
                     struct mo_err *e)
{
    static const char *const known[] = {"format", "version",  "title",
                                        "model",  "exported", "entries"};
    uint64_t version = 0;

    if (!mo_json_str_eq(mo_json_get(root, "format"), MO_SPAN(MO_EXPORT_FORMAT)))
        return mo_fail(e, MO_EINVAL,
                       "this is no conversation that was exported as JSON");
    if (mo_json_u64(mo_json_get(root, "version"), &version) < 0 ||
        version != MO_EXPORT_VERSION)
        return mo_fail(e, MO_EINVAL, "only exports of version %d can be read",
                       MO_EXPORT_VERSION);
    mo_json_each (at, root) {
        size_t i = 0, n = 0;

        while (i < MO_COUNT(known) &&
               !mo_json_str_eq(at.key, mo_span_cstr(known[i])))
            i++;
        mo_json_each (other, root)
            n += i < MO_COUNT(known) &&
                 mo_json_str_eq(other.key, mo_span_cstr(known[i]));
        if (n != 1)
            return mo_fail(e, MO_EINVAL,
                           "the file has the unknown or repeated member %.*s",
                           at.key.n < 64 ? (int)at.key.n : 64, at.key.p);
    }
    if (mo_json_get(root, "title").p &&
        (!is_line(mo_json_get(root, "title"), MO_TITLE_MAX) ||
         mo_json_str_copy(mo_json_get(root, "title"), im->title,
                          sizeof(im->title)) < 0))
        return mo_fail(e, MO_EINVAL, "\"title\" is not valid");
    if (mo_json_get(root, "model").p &&
        (!is_line(mo_json_get(root, "model"), sizeof(im->model) - 1) ||
         mo_json_str_copy(mo_json_get(root, "model"), im->model,
                          sizeof(im->model)) < 0))
        return mo_fail(e, MO_EINVAL, "\"model\" is not valid");
    if (!mo_json_is(mo_json_get(root, "entries"), MO_JSON_ARRAY))
        return mo_fail(e, MO_EINVAL, "the file has no entries");
    return 0;
}

/* The entry that decides whether a turn was running: as mo_chat_last(). */
static const struct mo_imported_entry *last_of(const struct mo_imported *im)
{
    const struct mo_imported_entry *en = tip_of(im);

    while (en && (en->role == MO_ENTRY_SUMMARY || mo_entry_is_model(en->doc)))
        en = en->before ? &im->v[en->before - 1] : NULL;
    return en;
}

static void close_turn(struct mo_imported *im)
{
    const struct mo_imported_entry *last = last_of(im), *tip = tip_of(im);

    im->has_open = tip && tip->has_calls;
    if (im->has_open)
        im->nclosing = 2;
    else if (last &&
             (last->role == MO_ENTRY_USER || last->role == MO_ENTRY_TOOL))
        im->nclosing = 1;
}

int mo_imported_read(struct mo_span text, struct mo_imported *out,
                     struct mo_err *e)
{
    struct mo_json_doc doc;
    int rc = 0;

    *out = (struct mo_imported){.n = 0};
    if (text.n > MO_IMPORTED_MAX || mo_json_parse(text, DEPTH_MAX, &doc, e) < 0)
        return mo_fail(e, MO_EINVAL, "the file is no JSON");
    rc = take_head(doc.root, out, e);
    if (rc < 0)
        return rc;
    mo_json_each (at, mo_json_get(doc.root, "entries")) {
        rc = take_entry(out, at.val, e);
        if (rc == MO_EINVAL)
            return mo_wrap(e, "entries[%zu]", out->n);
        if (rc < 0)
            return rc;
    }
    close_turn(out);
    return 0;
}

void mo_imported_fini(struct mo_imported *im)
{
    mo_free(im->v);
    im->v = NULL;
    im->n = im->cap = 0;
}

/* --- what is stored --------------------------------------------------------
 */

size_t mo_imported_count(const struct mo_imported *im)
{
    return im->n + im->nclosing;
}

uint64_t mo_imported_at(const struct mo_imported *im, size_t i, uint64_t now)
{
    return i < im->n && im->v[i].at < now && im->v[i].at ? im->v[i].at : now;
}

/* Results for calls that had none when the file was made. */
static void put_open_results(const struct mo_imported *im, struct mo_buf *doc)
{
    const struct mo_imported_entry *en = tip_of(im);
    mo_autobuf struct mo_buf content = {.max = 1024};
    mo_autoarena struct mo_arena a = {.cap = (size_t)256 * 1024};
    struct mo_entry_result v[CALLS_MAX];
    struct mo_entry_call call;
    struct mo_json_iter it;
    size_t n = 0;

    while (en->role != MO_ENTRY_ASSISTANT)
        en = &im->v[en->before - 1];
    mo_content_put_text(
        &content, MO_SPAN("The conversation was exported before this call had "
                          "a result. It did not run here."));
    mo_entry_calls(&it, en->doc);
    while (n < CALLS_MAX && mo_entry_next_call(&it, &call)) {
        struct mo_entry_result *r = &v[n];

        *r = (struct mo_entry_result){.content = mo_buf_view(&content),
                                      .is_error = true,
                                      .state = "unknown"};
        if (mo_json_str(call.key, &a, &r->key) < 0 ||
            (call.id.p && mo_json_str(call.id, &a, &r->id) < 0) ||
            mo_json_str(call.name, &a, &r->name) < 0)
            doc->err = MO_ENOMEM;
        n++;
    }
    mo_buf_pass_err(doc, &content);
    if (!mo_buf_err(doc))
        mo_entry_tool(doc, v, n);
}

static void put_closing(const struct mo_imported *im, size_t i,
                        struct mo_buf *doc)
{
    if (i == 0 && im->has_open)
        put_open_results(im, doc);
    else
        mo_entry_note(doc, "imported",
                      MO_SPAN("Imported here before its last message was "
                              "answered."));
}

static bool is_left_out(const struct mo_imported_entry *en, struct mo_json key,
                        struct mo_json val, struct mo_span who)
{
    return mo_json_str_eq(key, MO_SPAN("scripts")) ||
           mo_json_str_eq(key, MO_SPAN("seq")) ||
           mo_json_str_eq(key, MO_SPAN("at")) ||
           (en->role == MO_ENTRY_USER && mo_json_str_eq(key, MO_SPAN("by")) &&
            !(who.n && mo_json_str_eq(val, who)));
}

/* An app would be shown at once, with data of the file. */
static void put_results(struct mo_json results, struct mo_buf *out)
{
    mo_autobuf struct mo_buf val = {.max = MO_STORE_DOC_MAX};
    struct mo_jw w;

    mo_jw_init(&w, out);
    mo_jw_arr(&w);
    mo_json_each (r, results) {
        mo_jw_obj(&w);
        mo_json_each (at, r.val) {
            if (mo_json_str_eq(at.key, MO_SPAN("app")))
                continue;
            mo_buf_reset(&val);
            (void)mo_json_compact(at.val, &val);
            mo_buf_pass_err(out, &val);
            mo_jw_key_raw(&w, at.key);
            mo_jw_raw(&w, mo_buf_view(&val));
        }
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
}

void mo_imported_put(const struct mo_imported *im, size_t i, struct mo_span who,
                     struct mo_buf *doc)
{
    const struct mo_imported_entry *en = &im->v[i];
    mo_autobuf struct mo_buf val = {.max = MO_STORE_DOC_MAX};
    struct mo_jw w;

    if (i >= im->n) {
        put_closing(im, i - im->n, doc);
        return;
    }
    w = mo_jw_object(doc);
    mo_json_each (at, en->doc) {
        uint64_t seq = 0;

        if (is_left_out(en, at.key, at.val, who))
            continue;
        mo_jw_key_raw(&w, at.key);
        if (mo_json_str_eq(at.key, MO_SPAN("to")) ||
            mo_json_str_eq(at.key, MO_SPAN("until"))) {
            (void)mo_json_u64(at.val, &seq);
            mo_jw_u64(&w, find_seq(im, seq, false));
            continue;
        }
        mo_buf_reset(&val);
        if (mo_json_str_eq(at.key, MO_SPAN("results")))
            put_results(at.val, &val);
        else
            (void)mo_json_compact(at.val, &val);
        mo_buf_pass_err(doc, &val);
        mo_jw_raw(&w, mo_buf_view(&val));
    }
    mo_jw_end(&w);
}
