/* llm_memo.c - reuses the beginning of the last request of a conversation.
 *
 * A conversation grows at its end, so the beginning of the next request has
 * already been checked, parsed and written. While writing, a wire records a
 * knot: a position before which nothing changes as long as entries are only
 * added. The bytes before it are kept here, and the next request continues from
 * there.
 *
 * Hashes (SipHash with a random key) over everything that forms a body decide
 * whether it is the same conversation: the model, the instructions, the tools,
 * and every entry of the last request, not only those before the knot. Digests
 * or ids are hashed in place of the content where they exist. If a hash
 * differs, everything is written anew. A reused body is therefore byte for byte
 * the same as a newly written one.
 *
 * Limit: MEMO_MAX bytes per conversation; a longer one is written anew each
 * time. If memory is short nothing is kept and nothing fails. */
#include "agent/llm/llm_priv.h"
#include "base/map.h"
#include "base/rand.h"

#define MEMO_MAX ((size_t)256 * 1024)

void mo_llm_memo_init(struct mo_llm_memo *m)
{
    *m = (struct mo_llm_memo){.key = {mo_random_u64(), mo_random_u64()}};
    mo_buf_init(&m->text, MEMO_MAX);
}

static void forget_memo(struct mo_llm_memo *m)
{
    mo_buf_fini(&m->text);
    m->knot = (struct mo_llm_knot){.len = 0};
}

/* --- hashes -------------------------------------------------------------- */

static uint64_t hash_span(const struct mo_llm_memo *m, uint64_t before,
                          struct mo_span s)
{
    return mo_siphash(m->key[0] ^ before, m->key[1], s);
}

static uint64_t hash_tool(const struct mo_llm_memo *m, uint64_t h,
                          const struct mo_llm_tool *t)
{
    h = hash_span(m, h, t->name);
    h = hash_span(m, h, t->digest);
    if (t->digest.n)
        return h;
    h = hash_span(m, h, t->description);
    return hash_span(m, h, t->schema);
}

static uint64_t hash_head(const struct mo_llm_memo *m,
                          const struct mo_llm_request *r)
{
    uint64_t h = hash_span(m, r->ntools * 2 + r->blind, mo_span_cstr(r->model));

    h = hash_span(m, h, r->system);
    for (size_t i = 0; i < r->ntools; i++)
        h = hash_tool(m, h, &r->tools[i]);
    return h;
}

/* h: hash of the entries before `from`. Ids are cheap to hash again. */
static uint64_t hash_entries(const struct mo_llm_memo *m, uint64_t h,
                             const struct mo_llm_request *r, size_t from,
                             size_t to)
{
    if (r->ids)
        return hash_span(m, to,
                         mo_span((const char *)r->ids, to * sizeof(*r->ids)));
    for (size_t i = from; i < to; i++)
        h = hash_span(m, h, r->entries[i]);
    return h;
}

/* --- find and keep ------------------------------------------------------- */

void mo_llm_memo_find(struct mo_llm_memo *m, struct mo_llm_ask *q,
                      struct mo_buf *body)
{
    const struct mo_llm_request *r = q->r;

    if (r->quiet)
        return;
    m->next_head = hash_head(m, r);
    if (m->knot.len == 0 || m->head != m->next_head || r->nentries < m->n ||
        m->entries != hash_entries(m, 0, r, 0, m->n)) {
        forget_memo(m);
        m->n = 0;
        m->entries = 0;
    } else if (mo_buf_span(body, mo_buf_view(&m->text)) == 0) {
        q->from = m->knot;
        memcpy(q->base, m->base, sizeof(q->base));
    } else {
        mo_buf_reset(body); /* start over, without reuse */
    }
    q->knot = &m->next;
    m->next = (struct mo_llm_knot){.len = 0};
}

void mo_llm_memo_keep(struct mo_llm_memo *m, const struct mo_llm_ask *q,
                      const struct mo_buf *body)
{
    size_t have = m->text.len;

    if (q->knot != &m->next)
        return;
    if (m->next.len < have || m->next.len > MEMO_MAX ||
        mo_buf_put(&m->text, body->p + have, m->next.len - have) < 0) {
        forget_memo(m);
        return;
    }
    m->entries = hash_entries(m, m->entries, q->r, m->n, q->r->nentries);
    m->n = q->r->nentries;
    m->head = m->next_head;
    m->knot = m->next;
    memcpy(m->base, q->base, sizeof(m->base));
}

/* --- for wires ----------------------------------------------------------- */

void mo_llm_knot(const struct mo_llm_ask *q, size_t entry,
                 const struct mo_jw *w, const char *role)
{
    if (q->knot)
        *q->knot = (struct mo_llm_knot){entry, w->b->len, *w, role};
}

bool mo_llm_go_on(const struct mo_llm_ask *q, struct mo_buf *body,
                  struct mo_jw *w)
{
    mo_jw_init(w, body);
    if (q->from.len == 0)
        return false;
    *w = q->from.w;
    w->b = body;
    return true;
}

size_t mo_llm_last_said(const struct mo_llm_ask *q)
{
    size_t i = mo_llm_last_user(q);

    while (i > q->from.entry && mo_llm_is_role(q->entries[i - 1], "user"))
        i--;
    return i;
}
