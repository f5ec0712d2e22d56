#include "policy/panel.h"

#include <stdio.h>

#include "codec/sha256.h"

struct mo_panel mo_panel_of_rule(const struct mo_config_rule *r)
{
    struct mo_panel p = {.four_eyes = r->four_eyes || r->approvals > 1};

    if (r->action != MO_ACTION_ASK || !(r->approvers.n || p.four_eyes))
        return (struct mo_panel){.need = 0};
    p.need = r->approvals > 1 ? (unsigned)r->approvals : 1;
    if (r->approvers.n)
        p.lists[p.nlists++] = &r->approvers;
    return p;
}

struct mo_panel mo_panel_join(const struct mo_panel *a,
                              const struct mo_panel *b)
{
    struct mo_panel p = *a;

    if (b->need > p.need)
        p.need = b->need;
    p.four_eyes |= b->four_eyes;
    for (size_t i = 0; i < b->nlists; i++) {
        MO_BUG_ON(p.nlists == MO_PANEL_LISTS);
        p.lists[p.nlists++] = b->lists[i];
    }
    return p;
}

uint64_t mo_panel_digest(const struct mo_panel *p)
{
    unsigned char sum[MO_SHA256_LEN];
    uint64_t out = 0;
    struct mo_sha256 h;
    char head[48];

    if (!p->need)
        return 0;
    (void)snprintf(head, sizeof(head), "%u %d", p->need, (int)p->four_eyes);
    mo_sha256_init(&h);
    mo_sha256_put(&h, head, strlen(head) + 1);
    for (size_t i = 0; i < p->nlists; i++) {
        for (size_t k = 0; k < p->lists[i]->n; k++)
            mo_sha256_put(&h, p->lists[i]->v[k], strlen(p->lists[i]->v[k]) + 1);
        mo_sha256_put(&h, "", 1);
    }
    mo_sha256_end(&h, sum);
    memcpy(&out, sum, sizeof(out));
    return out ? out : 1;
}

static bool is_listed(const struct mo_config_list *l,
                      const struct mo_identity *who)
{
    for (size_t i = 0; i < l->n; i++)
        if (mo_identity_is(who, mo_span_cstr(l->v[i])))
            return true;
    return false;
}

bool mo_panel_has(const struct mo_panel *p, const struct mo_identity *who)
{
    if (who->role >= MO_ROLE_OPERATOR)
        return p->need > 0;
    for (size_t i = 0; i < p->nlists; i++)
        if (!is_listed(p->lists[i], who))
            return false;
    /* Without a list: those who decide for others. */
    return p->nlists > 0 || (p->need && who->role >= MO_ROLE_APPROVER);
}

/* --- who has approved ---------------------------------------------------- */

static bool has_said(const struct mo_said *s, const char *name)
{
    for (unsigned i = 0; i < s->n; i++)
        if (strcmp(s->names[i], name) == 0)
            return true;
    return false;
}

const char *mo_panel_refuses(const struct mo_panel *p,
                             const struct mo_said *said,
                             const struct mo_identity *who,
                             const struct mo_span *askers, size_t n)
{
    for (size_t i = 0; p->four_eyes && i < n; i++)
        if (mo_span_is(askers[i], who->name))
            return "another person than the one who asked must approve this "
                   "call";
    if (!mo_panel_has(p, who))
        return "other persons approve this call";
    if (said->panel == mo_panel_digest(p) && has_said(said, who->name))
        return "you have approved this call; another person must, too";
    return NULL;
}

unsigned mo_said_missing(const struct mo_said *s, const struct mo_panel *p)
{
    unsigned n = s->panel == mo_panel_digest(p) ? s->n : 0;

    return n < p->need ? p->need - n : 0;
}

bool mo_said_add(struct mo_said *s, const struct mo_panel *p, const char *name)
{
    uint64_t panel = mo_panel_digest(p);

    if (s->panel != panel)
        *s = (struct mo_said){.panel = panel};
    if (!has_said(s, name) && s->n < MO_KEY_PERSONS_MAX)
        (void)snprintf(s->names[s->n++], MO_PERSON_MAX, "%s", name);
    return s->n >= p->need;
}

/* --- as JSON ------------------------------------------------------------- */

/* The operator has no name: "operator" is for people to read only. */
static void put_names(struct mo_jw *w, const struct mo_said *s, bool shown)
{
    mo_jw_member_arr(w, "approvedBy");
    for (unsigned i = 0; i < s->n; i++)
        mo_jw_cstr(w, shown ? mo_panel_shown(s->names[i]) : s->names[i]);
    mo_jw_end(w);
}

static const struct mo_said nobody;

void mo_panel_put(struct mo_jw *w, const struct mo_panel *p,
                  const struct mo_said *said)
{
    if (!p->need)
        return;
    mo_jw_member_arr(w, "approvers");
    for (size_t i = 0; i < p->nlists; i++)
        for (size_t k = 0; k < p->lists[i]->n; k++)
            mo_jw_cstr(w, p->lists[i]->v[k]);
    mo_jw_end(w);
    mo_jw_member_u64(w, "approvals", p->need);
    mo_jw_member_bool(w, "fourEyes", p->four_eyes);
    if (said)
        put_names(w, said->panel == mo_panel_digest(p) ? said : &nobody, true);
}

void mo_said_put(struct mo_jw *w, const struct mo_said *s)
{
    char panel[24];

    if (!s->n)
        return;
    put_names(w, s, false);
    (void)snprintf(panel, sizeof(panel), "%llu", (unsigned long long)s->panel);
    mo_jw_member_cstr(w, "panel", panel);
}

void mo_said_read(struct mo_said *s, struct mo_json doc)
{
    struct mo_json names = mo_json_get(doc, "approvedBy");
    struct mo_said got = {.n = 0};
    char panel[24];

    *s = got;
    if (mo_json_str_copy(mo_json_get(doc, "panel"), panel, sizeof(panel)) < 0 ||
        mo_span_u64(mo_span_cstr(panel), &got.panel) < 0 ||
        !mo_json_is(names, MO_JSON_ARRAY))
        return;
    mo_json_each (it, names)
        if (got.n == MO_KEY_PERSONS_MAX ||
            mo_json_str_copy(it.val, got.names[got.n++], MO_PERSON_MAX) < 0)
            return; /* all of them are asked again */
    *s = got;
}
