#include "agent/chat/skills.h"

#include "agent/chat/chat_write.h"
#include "agent/chat/event.h"
#include "agent/chat/load_tools.h"
#include "agent/chat/tools_off.h"
#include "gateway/catalog/catalog.h"
#include "gateway/gateway.h"
#include "mcp/skill.h"
#include "mcp/skill_file.h"

#define BEFORE_MAX ((size_t)1024 * 1024)

static const char tool_head[] =
    "Reads a skill: instructions of a server for a kind of task, written for "
    "you. Read the skill that fits before you begin such a task. Without "
    "`path` it returns the instructions (SKILL.md) and the names of the "
    "skill's other files; with `path` one of those files, or the files of a "
    "directory. Without `skill` it lists all skills. A long answer ends with "
    "the `offset` to go on at.\n\nSkills:\n";

static const char tool_tail[] =
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"skill\":{\"type\":\"string\",\"description\":\"name of the skill, as "
    "listed\"},"
    "\"path\":{\"type\":\"string\",\"description\":\"file or directory of the "
    "skill; default SKILL.md\"},"
    "\"offset\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"bytes of "
    "the answer to skip; default 0\"}},\"additionalProperties\":false},"
    "\"annotations\":{\"readOnlyHint\":true,"
    "\"destructiveHint\":false,\"idempotentHint\":true,"
    "\"openWorldHint\":false}}";

/* --- loading ------------------------------------------------------------- */

void mo_skills_free(struct chat *c)
{
    struct skills *s = mo_take_ptr(&c->skills);

    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++)
        mo_buf_fini(&s->v[i].before);
    mo_arena_fini(&s->arena);
    mo_free(s);
}

/* A server that reorders its list of files has changed the skill as well. */
static int read_pin(struct mo_arena *a, struct skill *s, struct mo_span server,
                    struct mo_span own)
{
    struct mo_json front = mo_json_get(s->entry, "frontmatter");
    mo_autobuf struct mo_buf b = {.max = SKILLS_BYTES_MAX};
    struct mo_span text;

    if (mo_skill_put_definition(s->entry, &b) < 0 ||
        mo_json_str(mo_json_get(front, "name"), a, &s->name) < 0)
        return MO_ENOMEM;
    text = mo_span_dup(a, mo_buf_view(&b));
    return text.p ? mo_tool_read(a, server, own,
                                 (struct mo_json){text.p, text.n}, &s->pin)
                  : MO_ENOMEM;
}

/* Copies the item: the catalogue may change. */
static int read_skill(struct skills *all, const struct mo_catalog *cat,
                      const struct mo_cat_item *it)
{
    struct skill *s = &all->v[all->n];
    struct mo_arena *a = &all->arena;
    struct mo_span text = mo_span_dup(a, mo_json_text(it->item));
    struct mo_span own = mo_span_dup(a, it->own);
    struct mo_span server =
        mo_span_dup(a, mo_span_cstr(mo_catalog_about(cat, it->server).name));

    *s = (struct skill){.entry = {text.p, text.n},
                        .verifiable = mo_skill_is_verifiable(it->item)};
    s->pin.source = SOURCE_SERVERS;
    s->pin.name = mo_span_dup(a, it->name);
    if (!text.p || !own.p || !server.p || !s->pin.name.p ||
        read_pin(a, s, server, own) < 0)
        return MO_ENOMEM;
    mo_buf_init(&s->before, BEFORE_MAX);
    all->n++;
    return 0;
}

static void find_shared_names(struct skills *all)
{
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->n; k++)
            if (i != k && mo_span_eq(all->v[i].name, all->v[k].name))
                all->v[i].shared = true;
}

static void check_pins(struct chat *c)
{
    struct mo_policy *p = c->agent->o.policy;

    for (size_t i = 0; i < c->skills->n; i++) {
        struct skill *s = &c->skills->v[i];

        if (!s->verifiable || mo_policy_tool_is_pinned(p, &s->pin, &s->before))
            mo_buf_reset(&s->before);
        else if (s->before.len == 0) /* the pins cannot be read */
            (void)mo_buf_puts(&s->before, "{}");
    }
    mo_policy_flush_pins(p);
}

void mo_skills_load(struct chat *c)
{
    const struct mo_gateway *g = c->agent->o.servers.gateway;
    const struct mo_catalog *cat = g ? mo_gateway_catalog(g) : NULL;
    size_t n = cat ? mo_catalog_count(cat, MO_CAT_SKILLS) : 0;
    struct skills *all = NULL;
    bool had = c->skills != NULL;

    mo_skills_free(c);
    if (n == 0 && !had)
        return;
    all = mo_new(struct skills);
    if (all == NULL)
        return;
    n = n > SKILLS_MAX ? SKILLS_MAX : n;
    mo_arena_init(&all->arena, SKILLS_BYTES_MAX);
    all->v = mo_arena_zalloc(&all->arena, (n + 1) * sizeof(*all->v));
    for (size_t i = 0; all->v && i < n; i++)
        if (read_skill(all, cat, mo_catalog_at(cat, MO_CAT_SKILLS, i)) < 0)
            break;
    c->skills = all;
    find_shared_names(all);
    check_pins(c);
}

/* --- for the model ------------------------------------------------------- */

bool mo_skill_is_offered(const struct chat *c, const struct skill *s)
{
    return s->verifiable && s->before.len == 0 && !mo_tools_off_has(c, &s->pin);
}

void mo_skill_put_name(struct mo_buf *b, const struct skill *s)
{
    if (s->shared) {
        (void)mo_buf_span(b, s->pin.def.server);
        (void)mo_buf_putc(b, '/');
    }
    (void)mo_buf_span(b, s->name);
}

/* One line; line breaks of a description become blanks. */
static void put_line(struct mo_buf *b, const struct skill *s)
{
    struct mo_span text = s->pin.def.description;

    (void)mo_buf_puts(b, "- ");
    mo_skill_put_name(b, s);
    (void)mo_buf_puts(b, ": ");
    for (size_t i = 0; i < text.n; i++)
        (void)mo_buf_putc(b, (unsigned char)text.p[i] < ' ' ? ' ' : text.p[i]);
    (void)mo_buf_putc(b, '\n');
}

/* Returns how many are offered. */
static size_t put_told(const struct chat *c, struct mo_buf *b)
{
    size_t offered = 0, told = 0, end = b->len + SKILLS_TOLD_MAX;

    for (size_t i = 0; c->skills && i < c->skills->n; i++) {
        size_t at = b->len;

        if (!mo_skill_is_offered(c, &c->skills->v[i]))
            continue;
        put_line(b, &c->skills->v[i]);
        if (b->len > end)
            b->len = at;
        else
            told++;
        offered++;
    }
    if (told < offered)
        (void)mo_buf_printf(b, "- and %zu more; call it without arguments\n",
                            offered - told);
    return offered;
}

int mo_skills_add_tool(const struct chat *c, struct mo_json list,
                       struct mo_buf *out)
{
    mo_autobuf struct mo_buf text = {.max = 4 * SKILLS_TOLD_MAX};
    bool any = mo_json_len(list) > 0;

    (void)mo_buf_puts(&text, tool_head);
    if (put_told(c, &text) == 0)
        return mo_buf_span(out, list.p ? mo_json_text(list) : MO_SPAN("[]"));
    if (mo_buf_err(&text))
        return mo_buf_err(&text);
    if (any)
        (void)mo_buf_put(out, list.p, list.n - 1); /* without the bracket */
    (void)mo_buf_puts(out, any ? "," : "[");
    (void)mo_buf_puts(out, "{\"name\":\"" SKILL_TOOL
                           "\",\"title\":\"Read a skill\",\"description\":");
    (void)mo_json_quote(out, mo_buf_view(&text));
    (void)mo_buf_putc(out, ',');
    (void)mo_buf_puts(out, tool_tail);
    return mo_buf_putc(out, ']');
}

/* --- for people ---------------------------------------------------------- */

void mo_skill_put_trouble(struct mo_buf *b, const struct skill *s)
{
    (void)mo_buf_printf(b,
                        "The skill %.*s of %.*s has changed. It is not used "
                        "until somebody accepts the change.",
                        (int)s->name.n, s->name.p, (int)s->pin.def.server.n,
                        s->pin.def.server.p);
}

void mo_skills_put_troubles(struct chat *c)
{
    for (size_t i = 0; c->skills && i < c->skills->n; i++) {
        const struct skill *s = &c->skills->v[i];

        if (s->before.len == 0)
            continue;
        mo_skill_put_trouble(&c->troubles, s);
        (void)mo_buf_putc(&c->troubles, '\0');
    }
}

static void put_skill(struct mo_jw *w, const struct skill *s)
{
    struct mo_json files = mo_json_get(s->entry, "resources");

    mo_jw_obj(w);
    mo_jw_member(w, "uri", s->pin.name);
    mo_jw_member(w, "server", s->pin.def.server);
    mo_jw_member(w, "name", s->name);
    mo_jw_member(w, "description", s->pin.def.description);
    mo_jw_member_u64(w, "files", s->verifiable ? mo_json_len(files) : 0);
    mo_jw_member_bool(w, "verifiable", s->verifiable);
    if (s->before.len > 0) {
        mo_jw_member_cstr(w, "digest", s->pin.digest);
        mo_jw_member_raw(w, "changedFrom", mo_buf_view(&s->before));
        mo_jw_member_raw(w, "now", s->pin.def.schema);
    }
    mo_jw_end(w);
}

void mo_skills_put(struct mo_jw *w, const struct chat *c)
{
    mo_jw_member_arr(w, "skills");
    for (size_t i = 0; c->skills && i < c->skills->n; i++)
        put_skill(w, &c->skills->v[i]);
    mo_jw_end(w);
}

static struct skill *find_changed(const struct chat *c, struct mo_span uri)
{
    for (size_t i = 0; c->skills && i < c->skills->n; i++) {
        struct skill *s = &c->skills->v[i];

        if (s->before.len > 0 && mo_span_eq(s->pin.name, uri))
            return s;
    }
    return NULL;
}

bool mo_skills_accept(struct mo_member *m, struct mo_span uri,
                      struct mo_span digest, struct ack *ack)
{
    struct chat *c = m->chat;
    struct skill *s = find_changed(c, uri);
    char text[200];

    if (s == NULL)
        return false;
    if (!mo_span_eq_ct(digest, mo_span_cstr(s->pin.digest))) {
        mo_chat_ack(ack, "changed",
                    "the skill has changed again; look at it again");
        return true;
    }
    if (mo_policy_accept_tool(c->agent->o.policy, &s->pin) < 0) {
        mo_chat_ack(ack, "failed", "out of memory");
        return true;
    }
    mo_chat_audit(c, &(struct mo_audit_row){.event = "accepted",
                                            .subject = s->pin.name,
                                            .digest = s->pin.digest,
                                            .who = mo_span_cstr(m->who)});
    mo_buf_reset(&s->before);
    (void)snprintf(text, sizeof(text),
                   "The change of the skill %.*s was "
                   "accepted.",
                   (int)s->name.n, s->name.p);
    mo_chat_event_message(c, NULL, text);
    mo_chat_event_skills(c);
    mo_agent_stale(
        c->agent); /* also this one: the tool names the skill again */
    mo_chat_ack_ok(ack, mo_span(NULL, 0));
    return true;
}
