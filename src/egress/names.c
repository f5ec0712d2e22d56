#include "egress/names.h"

#define INDEX_BITS 17 /* of a /15 */
#define INDEX_MASK ((1u << INDEX_BITS) - 1)

static const struct mo_ip first4 = {
    {[10] = 0xFF, [11] = 0xFF, [12] = 198, [13] = 18}};
static const struct mo_ip first_local = {
    {[10] = 0xFF, [11] = 0xFF, [12] = 127, [13] = 18}};
static const struct mo_ip first6 = {{0xFD, 0x6D, 0x6F, 0x2D, 0x62, 0x6F, 0x78}};

void mo_egress_names_init(struct mo_egress_names *t, bool loopback)
{
    t->loopback = loopback;
    mo_map_init_lent(&t->by_text, MO_EGRESS_NAMES_MAX);
    mo_map_init_lent(&t->by_index, MO_EGRESS_NAMES_MAX);
}

void mo_egress_names_fini(struct mo_egress_names *t)
{
    mo_map_each (en, &t->by_text)
        mo_free(en->value);
    mo_map_fini(&t->by_text);
    mo_map_fini(&t->by_index);
}

static struct mo_span index_key(const uint32_t *index)
{
    return mo_span((const char *)index, sizeof(*index));
}

/* The first and the last address of the range are left out. */
static uint32_t free_index(const struct mo_egress_names *t, const char *text)
{
    uint32_t i = (uint32_t)mo_siphash(0, 0, mo_span_cstr(text)) & INDEX_MASK;

    while (i == 0 || i == INDEX_MASK || mo_map_get(&t->by_index, index_key(&i)))
        i = (i + 1) & INDEX_MASK;
    return i;
}

int mo_egress_names_add(struct mo_egress_names *t, const char *text,
                        struct mo_egress_name **out)
{
    size_t n = strlen(text);
    struct mo_egress_name *x = mo_map_get(&t->by_text, mo_span(text, n));
    int rc;

    *out = x;
    if (x)
        return 0;
    x = mo_zalloc(sizeof(*x) + n + 1);
    if (!x)
        return MO_ENOMEM;
    memcpy(x->text, text, n);
    x->index = free_index(t, text);
    mo_list_init(&x->queued);
    mo_list_init(&x->waiting);
    rc = mo_map_add(&t->by_text, mo_span(x->text, n), x);
    if (rc == 0) {
        rc = mo_map_add(&t->by_index, index_key(&x->index), x);
        if (rc < 0)
            (void)mo_map_del(&t->by_text, mo_span(x->text, n));
    }
    if (rc < 0) {
        mo_free(x);
        return rc;
    }
    *out = x;
    return 0;
}

/* --- addresses ----------------------------------------------------------- */

static struct mo_ip add_index(struct mo_ip ip, uint32_t index)
{
    ip.b[13] = (unsigned char)(ip.b[13] + (index >> 16));
    ip.b[14] = (unsigned char)(index >> 8);
    ip.b[15] = (unsigned char)index;
    return ip;
}

struct mo_ip mo_egress_name_v4(const struct mo_egress_names *t,
                               const struct mo_egress_name *n)
{
    return add_index(t->loopback ? first_local : first4, n->index);
}

struct mo_ip mo_egress_name_v6(const struct mo_egress_name *n)
{
    return add_index(first6, n->index);
}

static bool is_in(const struct mo_ip *ip, const struct mo_ip *first)
{
    return memcmp(ip->b, first->b, 13) == 0 &&
           (ip->b[13] & 0xFE) == (first->b[13] & 0xFE);
}

bool mo_egress_is_inside(const struct mo_ip *ip)
{
    return is_in(ip, &first4) || is_in(ip, &first6);
}

struct mo_egress_name *mo_egress_names_at(const struct mo_egress_names *t,
                                          const struct mo_ip *ip)
{
    uint32_t index;

    if (t->loopback ? !is_in(ip, &first_local) : !mo_egress_is_inside(ip))
        return NULL;
    index =
        (uint32_t)(ip->b[13] & 1) << 16 | (uint32_t)ip->b[14] << 8 | ip->b[15];
    return mo_map_get(&t->by_index, index_key(&index));
}
