#include "loop/peers.h"

#include <arpa/inet.h>

#define PEERS_MAX ((size_t)1 << 20)

struct mo_peers {
    struct mo_map map;
    struct mo_crowd_place crowd;
    bool closed; /* freed when the last peer leaves */
};

struct mo_peers *mo_peers_new(const struct mo_crowd_place *crowd)
{
    struct mo_peers *t = mo_new(struct mo_peers);

    if (!t)
        return NULL;
    mo_map_init_lent(&t->map, PEERS_MAX);
    if (crowd)
        t->crowd = *crowd;
    return t;
}

static void maybe_free(struct mo_peers *t)
{
    if (!t->closed || t->map.len)
        return;
    mo_map_fini(&t->map);
    mo_free(t);
}

void mo_peers_free(struct mo_peers *t)
{
    t->closed = true;
    maybe_free(t);
}

/* Sets key and len; false for anything but "1.2.3.4:5" and "[::1]:5". */
static bool read_peer(const char *peer, struct mo_peer *out)
{
    static const unsigned char mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    struct mo_span s = mo_span_cstr(peer);
    bool v6 = mo_span_strip(&s, MO_SPAN("["));
    unsigned char b[16];
    char host[64];

    s = mo_span_cut(&s, v6 ? ']' : ':');
    if (s.n >= sizeof(host))
        return false;
    memcpy(host, s.p, s.n);
    host[s.n] = 0;
    host[strcspn(host, "%")] = 0; /* the scope of a link-local address */
    if (inet_pton(v6 ? AF_INET6 : AF_INET, host, b) != 1)
        return false;
    out->len = v6 ? 8 : 4;
    if (v6 && memcmp(b, mapped, sizeof(mapped)) == 0) {
        memmove(b, b + 12, 4);
        out->len = 4;
    }
    memcpy(out->key, b, out->len);
    return true;
}

static struct mo_span key_of(const struct mo_peer *p)
{
    return mo_span((const char *)p->key, p->len);
}

static void count_for_others(const struct mo_peer *p, int add)
{
    if (p->table->crowd.all)
        mo_crowd_peer(&p->table->crowd, key_of(p), add);
}

unsigned mo_peers_count(const struct mo_peer *p)
{
    const struct mo_crowd_place *crowd = &p->table->crowd;

    return p->n + (crowd->all ? mo_crowd_others(crowd, key_of(p)) : 0);
}

static struct mo_peer *join(struct mo_peers *t, const char *peer)
{
    struct mo_peer want = {.table = t, .n = 1}, *p;

    if (!read_peer(peer, &want))
        return NULL;
    p = mo_map_get(&t->map, key_of(&want));
    if (p) {
        p->n++;
        return p;
    }
    p = mo_new(struct mo_peer);
    if (!p)
        return NULL;
    *p = want;
    if (mo_map_put(&t->map, key_of(p), p, NULL) == 0)
        return p;
    mo_free(p);
    return NULL;
}

struct mo_peer *mo_peers_join(struct mo_peers *t, const char *peer)
{
    struct mo_peer *p = join(t, peer);

    if (p)
        count_for_others(p, 1);
    return p;
}

void mo_peers_leave(struct mo_peer *p)
{
    struct mo_peers *t = p ? p->table : NULL;

    if (!p)
        return;
    count_for_others(p, -1);
    if (--p->n)
        return;
    (void)mo_map_del(&t->map, key_of(p));
    mo_free(p);
    maybe_free(t);
}
