#include "policy/connection_log.h"

#include <stdio.h>

#include "base/clock.h"

#define KEY_MAX ((size_t)300)

struct line {
    struct mo_list node;
    char host[MO_EGRESS_HOST_MAX + 1]; /* or the address */
    char address[MO_IP_TEXT];
    char rule[128], reason[120]; /* of the last one */
    unsigned port;
    bool allowed;
    uint64_t count, sent, received, first, last; /* wall ms */
};

struct owner {
    struct mo_list node;
    struct mo_list lines; /* quiet for longest first */
    unsigned n;
    uint64_t more; /* connections without a line */
    char key[KEY_MAX];
};

static void make_key(char key[KEY_MAX], const char *server, const char *session)
{
    (void)snprintf(key, KEY_MAX, "%c%s", server ? 'm' : 's',
                   server ? server : session);
}

static void drop_line(struct owner *o, struct line *x)
{
    o->more += x->count;
    o->n--;
    mo_list_del(&x->node);
    mo_free(x);
}

static void drop_owner(struct mo_connection_log *l, struct owner *o)
{
    mo_list_drain (x, &o->lines, struct line, node)
        mo_free(x);
    (void)mo_map_del(&l->map, mo_span_cstr(o->key));
    mo_list_del(&o->node);
    mo_free(o);
}

void mo_connection_log_init(struct mo_connection_log *l)
{
    mo_map_init_lent(&l->map, MO_CONNECTION_LOG_OWNERS);
    mo_list_init(&l->owners);
}

void mo_connection_log_fini(struct mo_connection_log *l)
{
    mo_list_each_entry_safe (o, &l->owners, struct owner, node)
        drop_owner(l, o);
    mo_map_fini(&l->map);
}

/* --- adding --------------------------------------------------------------- */

static struct owner *find_owner(struct mo_connection_log *l, const char *server,
                                const char *session)
{
    struct owner *o, *oldest = mo_list_first(&l->owners, struct owner, node);
    char key[KEY_MAX];

    make_key(key, server, session);
    o = mo_map_get(&l->map, mo_span_cstr(key));
    if (o)
        return o;
    if (oldest && l->map.len == MO_CONNECTION_LOG_OWNERS)
        drop_owner(l, oldest);
    o = mo_new(struct owner);
    if (!o)
        return NULL;
    memcpy(o->key, key, sizeof(key));
    mo_list_init(&o->lines);
    mo_list_init(&o->node);
    if (mo_map_add(&l->map, mo_span_cstr(o->key), o) == 0)
        return o;
    mo_free(o);
    return NULL;
}

static struct line *find_line(struct owner *o, const char *host,
                              const struct mo_egress_row *r)
{
    struct line *x, *oldest = mo_list_first(&o->lines, struct line, node);

    mo_list_each_entry (y, &o->lines, struct line, node)
        if (y->port == r->port && y->allowed == r->allowed &&
            strcmp(y->host, host) == 0)
            return y;
    if (oldest && o->n == MO_CONNECTION_LOG_LINES)
        drop_line(o, oldest);
    x = mo_new(struct line);
    if (!x)
        return NULL;
    (void)snprintf(x->host, sizeof(x->host), "%s", host);
    x->port = r->port;
    x->allowed = r->allowed;
    x->first = mo_wall_ms();
    mo_list_init(&x->node);
    o->n++;
    return x;
}

void mo_connection_log_add(struct mo_connection_log *l, const char *server,
                           const char *session, const struct mo_egress_row *r)
{
    const char *host = *r->name ? r->name : r->address;
    struct owner *o = find_owner(l, server, session);
    struct line *x;

    if (!o)
        return;
    mo_list_del(&o->node);
    mo_list_push(&l->owners, &o->node);
    o->more += r->uncounted;
    x = *host ? find_line(o, host, r) : NULL;
    if (!x)
        return;
    mo_list_del(&x->node);
    mo_list_push(&o->lines, &x->node);
    (void)snprintf(x->address, sizeof(x->address), "%s", r->address);
    (void)snprintf(x->rule, sizeof(x->rule), "%s", r->rule);
    (void)snprintf(x->reason, sizeof(x->reason), "%s", r->reason);
    x->count++;
    x->sent += r->sent;
    x->received += r->received;
    x->last = mo_wall_ms();
}

void mo_connection_log_forget(struct mo_connection_log *l, const char *session)
{
    char key[KEY_MAX];
    struct owner *o;

    make_key(key, NULL, session);
    o = mo_map_get(&l->map, mo_span_cstr(key));
    if (o)
        drop_owner(l, o);
}

/* --- showing -------------------------------------------------------------- */

static void put_line(struct mo_jw *w, const struct line *x)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "host", x->host);
    mo_jw_member_cstr(w, "address", x->address);
    mo_jw_member_u64(w, "port", x->port);
    mo_jw_member_bool(w, "allowed", x->allowed);
    mo_jw_member_opt(w, "rule", mo_span_cstr(x->rule));
    mo_jw_member_cstr(w, "reason", x->reason);
    mo_jw_member_u64(w, "count", x->count);
    mo_jw_member_u64(w, "sent", x->sent);
    mo_jw_member_u64(w, "received", x->received);
    mo_jw_member_u64(w, "first", x->first);
    mo_jw_member_u64(w, "last", x->last);
    mo_jw_end(w);
}

void mo_connection_log_put(const struct mo_connection_log *l,
                           const char *server, const char *session,
                           struct mo_jw *w)
{
    const struct owner *o;
    char key[KEY_MAX];

    make_key(key, server, session);
    o = mo_map_get(&l->map, mo_span_cstr(key));
    mo_jw_obj(w);
    mo_jw_member_arr(w, "connections");
    for (struct mo_list *n = o ? o->lines.prev : NULL; o && n != &o->lines;
         n = n->prev)
        put_line(w, mo_container_of(n, struct line, node));
    mo_jw_end(w);
    mo_jw_member_u64(w, "more", o ? o->more : 0);
    mo_jw_end(w);
}
