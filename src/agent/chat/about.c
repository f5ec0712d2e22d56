/* about.c - see about.h. */
#include "agent/chat/about.h"

#include "codec/text/utf8.h"

#define RULE_TITLE_MAX 80

static const char *const members[] = {"title", "named",  "pinned", "archived",
                                      "tags",  "system", "offer"};
static const char *const offers[] = {"all", "search", "code", "auto", "", NULL};

/* --- titles -------------------------------------------------------------- */

/* Each run of blanks and control characters becomes one blank. */
static void put_words(struct mo_span s, struct mo_buf *out)
{
    bool is_gap = false;

    for (size_t i = 0; i < s.n; i++) {
        bool blank = (unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f;

        if (!blank && is_gap && out->len > 0)
            mo_buf_putc(out, ' ');
        if (!blank)
            mo_buf_putc(out, s.p[i]);
        is_gap = blank;
    }
}

/* Marks of Markdown at the beginning and the end of a line. */
static struct mo_span strip_marks(struct mo_span s)
{
    s = mo_span_trim(s);
    while (s.n > 0 && strchr("#>*_`-+ \t", s.p[0]) && s.p[0])
        s = mo_span_skip(s, 1);
    while (s.n > 0 && strchr("*_` \t\r", s.p[s.n - 1]) && s.p[s.n - 1])
        s.n--;
    return s;
}

void mo_about_title(struct mo_span message, struct mo_buf *out)
{
    mo_autobuf struct mo_buf words = {.max = (size_t)512 * 1024};
    size_t n = 0;

    while (message.n > 0 && words.len == 0)
        put_words(strip_marks(mo_span_cut(&message, '\n')), &words);
    if (mo_buf_err(&words))
        return;
    n = mo_utf8_cut(mo_buf_view(&words), RULE_TITLE_MAX);
    if (n < words.len) /* room for the mark of the cut */
        n = mo_utf8_cut(mo_buf_view(&words), RULE_TITLE_MAX - 3);
    mo_buf_put(out, words.p, n);
    if (n < words.len)
        mo_buf_puts(out, "\xe2\x80\xa6");
}

/* --- changes ------------------------------------------------------------- */

static int put_title(struct mo_jw *w, struct mo_json v, struct mo_err *e)
{
    mo_autobuf struct mo_buf text = {.max = 4096};
    mo_autobuf struct mo_buf line = {.max = MO_ABOUT_MAX};
    struct mo_span rest;

    if (!mo_json_is(v, MO_JSON_STRING) || mo_json_str_buf(v, &text) < 0)
        return mo_fail(e, MO_EINVAL, "title is a text of at most 4 KB");
    rest = mo_buf_view(&text);
    put_words(mo_span_trim(mo_span_cut(&rest, '\n')), &line);
    if (line.len == 0)
        return mo_fail(e, MO_EINVAL, "the title must not be empty");
    mo_jw_member(
        w, "title",
        mo_span(line.p, mo_utf8_cut(mo_buf_view(&line), MO_TITLE_MAX)));
    mo_jw_member_bool(w, "named", true);
    return 0;
}

static int put_flag(struct mo_jw *w, const char *key, struct mo_json v,
                    struct mo_err *e)
{
    bool on = false;

    if (mo_json_bool(v, &on) < 0)
        return mo_fail(e, MO_EINVAL, "%s is true or false", key);
    mo_jw_member_bool(w, key, on);
    return 0;
}

static int put_tag(struct mo_jw *w, struct mo_json v, struct mo_err *e)
{
    mo_autobuf struct mo_buf text = {.max = MO_ABOUT_MAX};
    mo_autobuf struct mo_buf tag = {.max = MO_ABOUT_MAX};

    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &text) == 0)
        put_words(mo_buf_view(&text), &tag);
    if (tag.len == 0 || tag.len > MO_ABOUT_TAG_MAX || mo_buf_err(&tag))
        return mo_fail(e, MO_EINVAL, "a tag is a text of 1 to %d bytes",
                       MO_ABOUT_TAG_MAX);
    mo_jw_str(w, mo_buf_view(&tag));
    return 0;
}

static int put_tags(struct mo_jw *w, struct mo_json v, struct mo_err *e)
{
    int rc = 0;

    if (!mo_json_is(v, MO_JSON_ARRAY) || mo_json_len(v) > MO_ABOUT_TAGS)
        return mo_fail(e, MO_EINVAL, "tags is a list of at most %d texts",
                       MO_ABOUT_TAGS);
    mo_jw_member_arr(w, "tags");
    mo_json_each (at, v)
        rc = rc < 0 ? rc : put_tag(w, at.val, e);
    mo_jw_end(w);
    return rc;
}

static bool has_controls(struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ' && !strchr("\t\n\r", s.p[i]))
            return true;
    return false;
}

static int put_system(struct mo_jw *w, struct mo_json v, struct mo_err *e)
{
    mo_autobuf struct mo_buf text = {.max = MO_ABOUT_SYSTEM_MAX};

    if (!mo_json_is(v, MO_JSON_STRING) || mo_json_str_buf(v, &text) < 0 ||
        has_controls(mo_buf_view(&text)))
        return mo_fail(e, MO_EINVAL,
                       "system is a text of at most %d bytes, without control "
                       "characters",
                       MO_ABOUT_SYSTEM_MAX);
    mo_jw_member(w, "system", mo_span_trim(mo_buf_view(&text)));
    return 0;
}

static int put_offer(struct mo_jw *w, struct mo_json v, struct mo_err *e)
{
    if (!mo_json_str_in(v, offers))
        return mo_fail(e, MO_EINVAL,
                       "offer is \"all\", \"search\", \"code\", \"auto\", or "
                       "empty for the configured one");
    mo_jw_member_raw(w, "offer", mo_json_text(v));
    return 0;
}

int mo_about_change(struct mo_json wish, struct mo_buf *change,
                    struct mo_err *e)
{
    struct mo_json title = mo_json_get(wish, "title");
    struct mo_json pinned = mo_json_get(wish, "pinned");
    struct mo_json archived = mo_json_get(wish, "archived");
    struct mo_json tags = mo_json_get(wish, "tags");
    struct mo_json system = mo_json_get(wish, "system");
    struct mo_json offer = mo_json_get(wish, "offer");
    struct mo_jw w = mo_jw_object(change);
    int rc = 0;

    if (!title.p && !pinned.p && !archived.p && !tags.p && !system.p &&
        !offer.p)
        return mo_fail(e, MO_EINVAL,
                       "the body is {title?, pinned?, archived?, tags?, "
                       "system?, offer?}");
    if (title.p)
        rc = put_title(&w, title, e);
    if (rc == 0 && pinned.p)
        rc = put_flag(&w, "pinned", pinned, e);
    if (rc == 0 && archived.p)
        rc = put_flag(&w, "archived", archived, e);
    if (rc == 0 && tags.p)
        rc = put_tags(&w, tags, e);
    if (rc == 0 && system.p)
        rc = put_system(&w, system, e);
    if (rc == 0 && offer.p)
        rc = put_offer(&w, offer, e);
    mo_jw_end(&w);
    if (rc == 0 && mo_buf_err(change))
        rc = mo_fail(e, mo_buf_err(change), "the request is too long");
    return rc;
}

static bool is_nothing(struct mo_json v)
{
    bool on = true;

    return (mo_json_bool(v, &on) == 0 && !on) ||
           (mo_json_is(v, MO_JSON_ARRAY) && mo_json_len(v) == 0) ||
           mo_json_str_eq(v, MO_SPAN(""));
}

void mo_about_apply(struct mo_json doc, struct mo_json change,
                    struct mo_buf *out)
{
    struct mo_jw w = mo_jw_object(out);

    mo_json_each (at, doc) {
        bool replaced = false;

        for (size_t i = 0; i < MO_COUNT(members); i++)
            replaced |= mo_json_str_eq(at.key, mo_span_cstr(members[i])) &&
                        mo_json_get(change, members[i]).p;
        if (replaced)
            continue;
        mo_jw_key_raw(&w, at.key);
        mo_jw_raw(&w, mo_json_text(at.val));
    }
    for (size_t i = 0; i < MO_COUNT(members); i++) {
        struct mo_json v = mo_json_get(change, members[i]);

        if (v.p && !is_nothing(v))
            mo_jw_member_raw(&w, members[i], mo_json_text(v));
    }
    mo_jw_end(&w);
}
