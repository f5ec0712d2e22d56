/* tool_tokens.c - see tool_tokens.h. */
#include "agent/chat/tool_tokens.h"

#include "agent/chat/chat_priv.h"
#include "agent/chat/entries.h"
#include "agent/chat/load_tools.h"
#include "agent/chat/script_calls.h"
#include "agent/chat/script_tools.h"
#include "agent/chat/tools_off.h"

/* An image costs a model as much as so many bytes of text, at most. */
#define IMAGE_COST ((size_t)8 * 1024)

/* --- definitions ----------------------------------------------------------
 */

/* Tools of the gateway that stand for those of servers. */
static bool is_search(const struct mo_tool *t)
{
    static const char *const names[] = {"find_tool", "execute",
                                        "list_capabilities", "explain_tool"};

    for (size_t i = 0; t->source == SOURCE_ROUTER && i < MO_COUNT(names); i++)
        if (mo_span_is(t->def.name, names[i]))
            return true;
    return false;
}

static void count_definitions(const struct chat *c, struct mo_tool_tokens *sum)
{
    bool all = strcmp(mo_script_offered(c), "all") == 0;

    for (size_t i = 0; i < mo_tools_count(c->tools); i++) {
        const struct mo_tool *t = mo_tools_at(c->tools, i);
        uint64_t n = t->name.n + t->def.description.n + t->def.schema.n;

        if (t->app_only || mo_changed_tools_is_blocked(c, t) ||
            mo_tools_off_has(c, t))
            continue;
        sum->sent += n;
        if (all || (t->source == SOURCE_ROUTER && !is_search(t)))
            sum->plain += n;
    }
    sum->sent += mo_script_words_bytes(c);
    if (!all)
        sum->plain += mo_script_tools_bytes(c);
}

/* --- calls and results ----------------------------------------------------
 */

static uint64_t count_content(struct mo_json content)
{
    uint64_t n = 0;

    mo_json_each (at, content)
        n += mo_entry_is_image(at.val) && at.val.n > IMAGE_COST ? IMAGE_COST
                                                                : at.val.n;
    return n;
}

/* The element of the array whose key is the same; or none. */
static struct mo_json find_key(struct mo_json list, struct mo_json key)
{
    mo_json_each (at, list)
        if (mo_span_eq(mo_json_text(mo_json_get(at.val, "key")),
                       mo_json_text(key)))
            return at.val;
    return (struct mo_json){NULL, 0};
}

static bool is_found_by_search(const struct chat *c, struct mo_json call)
{
    mo_autobuf struct mo_buf name = {.max = 1024};
    const struct mo_tool *t = NULL;

    if (mo_json_str_buf(mo_json_get(call, "name"), &name) == 0)
        t = mo_tools_find(c->tools, mo_buf_view(&name));
    return t && is_search(t) && !mo_span_is(t->def.name, "execute");
}

/* One call of the model. times: how often its text counts. */
static void count_call(const struct chat *c, struct mo_json call,
                       const struct entry *results, unsigned times,
                       struct mo_tool_tokens *sum)
{
    struct mo_json key = mo_json_get(call, "key");
    struct mo_json script = find_key(mo_json_get(results->doc, "scripts"), key);
    struct mo_json result = find_key(mo_json_get(results->doc, "results"), key);
    uint64_t text = mo_json_get(call, "name").n + mo_json_get(call, "args").n;
    uint64_t got = count_content(mo_json_get(result, "content"));
    uint64_t inner = 0, inner_got = 0;

    sum->sent += times * text + got;
    if (is_found_by_search(c, call))
        return;
    if (mo_json_u64(mo_json_get(script, "callBytes"), &inner) == 0 &&
        mo_json_u64(mo_json_get(script, "resultBytes"), &inner_got) == 0) {
        text = inner;
        got = inner_got;
    }
    sum->plain += times * text + got;
}

static void count_step(const struct chat *c, const struct entry *reply,
                       const struct entry *results, unsigned times,
                       struct mo_tool_tokens *sum)
{
    mo_json_each (at, mo_json_get(reply->doc, "blocks"))
        if (mo_json_str_eq(mo_json_get(at.val, "type"), MO_SPAN("call")))
            count_call(c, at.val, results, times, sum);
}

/* Backwards to the person's message. */
static void count_steps(const struct chat *c, struct mo_tool_tokens *sum)
{
    const struct entry *en = mo_chat_entry_before(c, NULL);
    const struct entry *results = NULL;
    unsigned times = 2; /* the newest: written now, and sent */

    for (; en && en->role != MO_ENTRY_USER; en = mo_chat_entry_before(c, en)) {
        if (en->role == MO_ENTRY_TOOL) {
            results = en;
        } else if (en->role == MO_ENTRY_ASSISTANT && results) {
            count_step(c, en, results, times, sum);
            results = NULL;
            times = 1;
        }
    }
}

/* --- sums ------------------------------------------------------------------
 */

static uint64_t tokens_of(uint64_t bytes)
{
    return (bytes + MO_TOKEN_BYTES - 1) / MO_TOKEN_BYTES;
}

struct mo_tool_tokens mo_tool_tokens_count(const struct chat *c)
{
    struct mo_tool_tokens sum = {.sent = 0};

    count_definitions(c, &sum);
    count_steps(c, &sum);
    return (struct mo_tool_tokens){tokens_of(sum.sent), tokens_of(sum.plain)};
}

void mo_tool_tokens_put(struct mo_buf *doc, const struct mo_tool_tokens *t)
{
    if (mo_buf_err(doc) || doc->len < 3 || t->sent == t->plain)
        return;
    doc->len--; /* the brace */
    mo_buf_printf(doc, ",\"toolTokens\":{\"sent\":%llu,\"plain\":%llu}}",
                  (unsigned long long)t->sent, (unsigned long long)t->plain);
}
