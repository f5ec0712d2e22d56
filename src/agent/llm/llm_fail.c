/* llm_fail.c - interprets provider errors: a message for the person, a stable
 * code for the turn, and whether and when to retry.
 *
 * Error formats differ: an `error` object, alone, in a list of one, or spread
 * over the document; a type, a code or a status in words. One table maps these
 * words, a second the HTTP statuses, a third the phrases that are more specific
 * than the type.
 *
 * Keys are never shown: the key is blanked in the provider's message, and the
 * message of an authentication error is not repeated at all. */
#include <stdio.h>
#include <time.h>

#include "agent/llm/llm_priv.h"
#include "codec/text/utf8.h"

#define AFTER_MAX_MS                                                           \
    60000            /* longer waits are reported to the person instead        \
                      */
#define SAID_MAX 120 /* bytes of the provider's message */

enum what { AUTH, RATE, LOAD, LONG, BAD, QUOTA, NO_MODEL, TROUBLE };

/* "before LABEL after: the provider's message" */
static const struct {
    const char *code;
    int err;
    bool again, quote;
    const char *before, *after;
} whats[] = {
    [AUTH] = {"auth", MO_EPOLICY, false, false, "",
              " does not accept the key: check it, or make a new one"},
    [RATE] = {"rate_limit", MO_EBUSY, true, true, "",
              " reports that its rate limit is reached: wait and try again"},
    [LOAD] = {"overloaded", MO_EUNAVAIL, true, true, "",
              " is overloaded: try again in a minute"},
    [LONG] = {"too_long", MO_ETOOBIG, false, true,
              "the conversation is too long for this model of ",
              ": start a new conversation or choose another model"},
    [BAD] = {"bad_request", MO_EINVAL, false, true, "", " refused the request"},
    [QUOTA] = {"quota", MO_EPOLICY, false, true, "the credit or quota at ",
               " is used up: see its billing page or choose another model"},
    [NO_MODEL] = {"no_model", MO_ENOTFOUND, false, true, "",
                  " has no such model for this key: choose another one"},
    [TROUBLE] = {"overloaded", MO_EUNAVAIL, true, true, "",
                 " has an internal error: try again in a minute"},
};

static const struct {
    const char *word;
    enum what what;
} words[] = {
    {"enforced_spend_limit_reached", QUOTA},
    {"ramp_limit_exceeded", RATE},
    {"authentication_error", AUTH},
    {"permission_error", AUTH},
    {"invalid_api_key", AUTH},
    {"UNAUTHENTICATED", AUTH},
    {"PERMISSION_DENIED", AUTH},
    {"insufficient_quota", QUOTA},
    {"billing_error", QUOTA},
    {"billing_hard_limit_reached", QUOTA},
    {"rate_limit_error", RATE},
    {"rate_limit_exceeded", RATE},
    {"RESOURCE_EXHAUSTED", RATE},
    {"overloaded_error", LOAD},
    {"server_is_overloaded", LOAD},
    {"UNAVAILABLE", LOAD},
    {"context_length_exceeded", LONG},
    {"exceed_context_size_error", LONG},
    {"request_too_large", LONG},
    {"model_not_found", NO_MODEL},
    {"not_found_error", NO_MODEL},
    {"NOT_FOUND", NO_MODEL},
    {"api_error", TROUBLE},
    {"server_error", TROUBLE},
    {"timeout_error", TROUBLE},
    {"INTERNAL", TROUBLE},
    {"DEADLINE_EXCEEDED", TROUBLE},
};

/* Phrases in the message, for types like "invalid request". */
static const struct {
    const char *phrase;
    enum what what;
} phrases[] = {
    {"API key not valid", AUTH},  {"API_KEY_INVALID", AUTH},
    {"prompt is too long", LONG}, {"maximum context length", LONG},
    {"context size", LONG},       {"context window", LONG},
    {"input token count", LONG},  {"credit balance", QUOTA},
    {"spend limit", QUOTA},
};

static const struct {
    int from, to;
    enum what what;
} statuses[] = {
    {401, 401, AUTH},     {402, 402, QUOTA},   {403, 403, AUTH},
    {404, 404, NO_MODEL}, {408, 409, TROUBLE}, {413, 413, LONG},
    {429, 429, RATE},     {503, 503, LOAD},    {529, 529, LOAD},
    {500, 599, TROUBLE},
};

/* --- reading the document ------------------------------------------------ */

struct said {
    struct mo_json error; /* the error object, or none */
    struct mo_span message;
};

static void read_said(struct said *s, struct mo_span body, struct mo_arena *a)
{
    struct mo_json root, text;
    struct mo_json_doc doc;

    *s = (struct said){.message = {NULL, 0}};
    if (mo_json_parse(body, 0, &doc, NULL) < 0) {
        s->message = body;
        return;
    }
    root = mo_json_is(doc.root, MO_JSON_ARRAY) ? mo_json_at(doc.root, 0)
                                               : doc.root;
    s->error = mo_json_get(root, "error");
    text = s->error; /* some servers send only a string */
    if (!mo_json_is(s->error, MO_JSON_STRING)) {
        if (!mo_json_is(s->error, MO_JSON_OBJECT))
            s->error = root;
        text = mo_json_get(s->error, "message");
    }
    (void)mo_json_str(text, a, &s->message);
}

static int error_word(struct mo_json v)
{
    for (size_t i = 0; i < MO_COUNT(words); i++) {
        if (mo_json_str_eq(v, mo_span_cstr(words[i].word)))
            return (int)words[i].what;
    }
    return -1;
}

static int find_word(const struct said *s)
{
    struct mo_json d = mo_json_get(s->error, "details");
    int w = error_word(mo_json_get(d, "error_code"));

    if (w < 0)
        w = error_word(mo_json_get(s->error, "code"));
    if (w < 0)
        w = error_word(mo_json_get(s->error, "type"));
    return w < 0 ? error_word(mo_json_get(s->error, "status")) : w;
}

static int find_phrase(const struct said *s)
{
    for (size_t i = 0; i < MO_COUNT(phrases); i++) {
        if (mo_span_search(s->message, mo_span_cstr(phrases[i].phrase)) >= 0)
            return (int)phrases[i].what;
    }
    return -1;
}

static int find_status(int status)
{
    for (size_t i = 0; i < MO_COUNT(statuses); i++) {
        if (status >= statuses[i].from && status <= statuses[i].to)
            return (int)statuses[i].what;
    }
    return -1;
}

/* "34s", "1.5s": durations as Google writes them. */
static int64_t seconds_ms(struct mo_json v)
{
    struct mo_json num;
    double s;

    if (!mo_json_is(v, MO_JSON_STRING) || v.n < 4 || v.p[v.n - 2] != 's')
        return -1;
    num = (struct mo_json){v.p + 1, v.n - 3};
    if (num.p[0] < '0' || num.p[0] > '9' || mo_json_f64(num, &s) < 0 || s > 1e6)
        return -1;
    return (int64_t)(s * 1000);
}

/* Google: reads the retry delay and whether the daily quota is used up. */
static bool read_google(const struct said *s, int64_t *after_ms)
{
    struct mo_json all = mo_json_get(s->error, "details");
    bool day = false;

    if (!mo_json_is(all, MO_JSON_ARRAY))
        return false;
    mo_json_each (at, all) {
        int64_t ms = seconds_ms(mo_json_get(at.val, "retryDelay"));

        if (ms >= 0)
            *after_ms = ms;
        if (mo_json_get(at.val, "violations").p &&
            mo_span_search(mo_json_text(at.val), MO_SPAN("PerDay")) >= 0)
            day = true;
    }
    return day;
}

/* --- messages ------------------------------------------------------------ */

/* The message in one line, without the key, cut at a character. */
static void clean_message(struct mo_span s, struct mo_span key,
                          char out[SAID_MAX + 1])
{
    size_t n = 0;

    while (s.n && n < SAID_MAX) {
        if (key.n > 3 && mo_span_starts(s, key)) {
            n += (size_t)snprintf(out + n, SAID_MAX + 1 - n, "[key]");
            n = n < SAID_MAX ? n : SAID_MAX;
            s = mo_span_skip(s, key.n);
            continue;
        }
        out[n++] = (unsigned char)s.p[0] < ' ' ? ' ' : s.p[0];
        s = mo_span_skip(s, 1);
    }
    n = mo_utf8_good(mo_span(out, n));
    while (n && s.n && (out[n - 1] & 0x80))
        n--; /* may be a partial character */
    out[n] = '\0';
}

static void set_failure(struct mo_llm_verdict *v, const char *label, int w,
                        struct mo_span message, struct mo_span key)
{
    char said[SAID_MAX + 1] = "";

    if (whats[w].quote)
        clean_message(message, key, said);
    (void)mo_fail(&v->f.err, whats[w].err, "%s%.40s%s%s%s", whats[w].before,
                  label, whats[w].after, said[0] ? ": " : "", said);
    v->f.code = whats[w].code;
}

/* An error inside a stream has its status in the document. */
static int status_of(const struct mo_llm_hint *h, const struct said *s)
{
    int64_t n = h->status;

    if (n == 0)
        (void)mo_json_i64(mo_json_get(s->error, "code"), &n);
    return n >= 100 && n < 600 ? (int)n : 0;
}

static int find_kind(const struct said *s, int status, bool day)
{
    int w = find_word(s), by = find_status(status);

    if (w < 0 || (w == TROUBLE && by >= 0))
        w = by;
    if (w < 0 || w == BAD) {
        int p = find_phrase(s);

        w = p < 0 ? BAD : p;
    }
    return day ? QUOTA : w;
}

void mo_llm_judge(const char *label, const struct mo_llm_hint *h,
                  struct mo_span body, struct mo_span key,
                  struct mo_llm_verdict *v)
{
    int64_t after = h->after_ms;
    mo_autoarena struct mo_arena a = {.cap = body.n + 4096};
    struct said s;
    int w, status;
    bool day;

    *v = (struct mo_llm_verdict){.again = false};
    read_said(&s, body, &a);
    status = status_of(h, &s);
    day = read_google(&s, &after);
    w = find_kind(&s, status, day);
    set_failure(v, label, w, s.message, key);
    v->again = whats[w].again;
    if (h->should >= 0 && w != QUOTA)
        v->again = h->should > 0;
    v->loading = status == 503 &&
                 mo_span_search(s.message, MO_SPAN("oading model")) >= 0;
    v->after_ms = after;
    if (after > 0)
        v->f.retry_after_ms = after < UINT32_MAX ? (unsigned)after : UINT32_MAX;
}

/* --- when to try again --------------------------------------------------- */

unsigned mo_llm_wait_ms(int64_t after_ms, unsigned n, uint32_t rnd)
{
    unsigned ms = n < 5 ? 500u << (n - 1) : 8000;

    if (after_ms > AFTER_MAX_MS)
        return 0;
    if (after_ms >= 0)
        return after_ms ? (unsigned)after_ms : 1;
    return ms - (unsigned)((uint64_t)ms * rnd / UINT32_MAX / 4);
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" in ms since 1970; -1: not a date. */
static int64_t http_date(struct mo_span s)
{
    struct tm tm = {0};
    char text[30];
    const char *end;

    (void)snprintf(text, sizeof(text), "%.*s", (int)s.n, s.p);
    end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    return s.n < sizeof(text) && end && !*end ? (int64_t)timegm(&tm) * 1000
                                              : -1;
}

/* Accepts seconds or a date; a past date means now. */
static int64_t retry_after(struct mo_span s, uint64_t wall_ms)
{
    struct mo_json num = {s.p, s.n};
    int64_t at;
    double sec;

    if (s.n && mo_is_digit(s.p[0]))
        return mo_json_f64(num, &sec) == 0 && sec < 1e9 ? (int64_t)(sec * 1000)
                                                        : -1;
    at = http_date(s);
    if (at < 0)
        return -1;
    return at > (int64_t)wall_ms ? at - (int64_t)wall_ms : 0;
}

void mo_llm_hint_head(struct mo_llm_hint *h, const struct mo_http_head *head,
                      uint64_t wall_ms)
{
    struct mo_span should = mo_http_get(head, "x-should-retry");
    struct mo_span ms = mo_http_get(head, "retry-after-ms");
    struct mo_span after = mo_http_get(head, "retry-after");
    struct mo_json num = {ms.p, ms.n};
    double v;

    *h = (struct mo_llm_hint){head->status, -1, -1};
    if (mo_span_is(should, "true"))
        h->should = 1;
    else if (mo_span_is(should, "false"))
        h->should = 0;
    if (ms.n && mo_is_digit(ms.p[0]) && mo_json_f64(num, &v) == 0 && v < 1e12)
        h->after_ms = (int64_t)v;
    else if (after.n)
        h->after_ms = retry_after(after, wall_ms);
}
