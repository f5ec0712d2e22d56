#include "codec/dns.h"

#define HEAD       12
#define LABEL_MAX  63
#define CLASS_IN   1
#define TYPE_OPT   41
#define OPT_HEAD   11 /* root name, type, class, ttl, length */
#define IS_ANSWER  0x8000u
#define OPCODE     0x7800u
#define AA_BIT     0x0400u
#define TC_BIT     0x0200u
#define RD_BIT     0x0100u
#define RA_BIT     0x0080u
#define NAME_AT_12 0xC00Cu /* a pointer to the question's name */

static uint16_t get16(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;

    return (uint16_t)(b[0] << 8 | b[1]);
}

static void put16(struct mo_buf *b, unsigned v)
{
    mo_buf_putc(b, (char)(v >> 8));
    mo_buf_putc(b, (char)v);
}

/* --- reading ------------------------------------------------------------- */

static void put_label(struct mo_dns_query *q, struct mo_span label)
{
    if (q->name_len)
        q->name[q->name_len++] = '.';
    for (size_t i = 0; i < label.n; i++) {
        char c = label.p[i];

        if (!mo_is_digit(c) && !mo_is_alpha(c) && c != '-' && c != '_')
            q->odd = true;
        q->name[q->name_len++] = mo_lower(c);
    }
}

/* The name at the start of *in; takes it off. */
static bool take_name(struct mo_span *in, struct mo_dns_query *q)
{
    for (;;) {
        size_t n;

        if (in->n == 0)
            return false;
        n = (unsigned char)in->p[0];
        *in = mo_span_skip(*in, 1);
        if (n == 0)
            break;
        if (n > LABEL_MAX || n > in->n ||
            q->name_len + (q->name_len > 0) + n > MO_DNS_NAME_MAX)
            return false;
        put_label(q, mo_span_take(in, n));
    }
    q->name[q->name_len] = '\0';
    return true;
}

/* One OPT record of version 0 and nothing behind it. */
static bool is_opt(struct mo_span s)
{
    return s.n >= OPT_HEAD && s.p[0] == 0 && get16(s.p + 1) == TYPE_OPT &&
           s.p[6] == 0 && (size_t)get16(s.p + 9) == s.n - OPT_HEAD;
}

static bool read_body(struct mo_span in, unsigned additional,
                      struct mo_dns_query *q, uint16_t *class)
{
    struct mo_span all = in;

    if (!take_name(&in, q) || in.n < 4)
        return false;
    q->type = get16(in.p);
    *class = get16(in.p + 2);
    in = mo_span_skip(in, 4);
    q->edns = additional == 1;
    if (q->edns ? !is_opt(in) : in.n > 0)
        return false;
    q->question = mo_span_head(all, all.n - in.n);
    return true;
}

int mo_dns_read(struct mo_span in, struct mo_dns_query *q)
{
    unsigned flags, additional;
    uint16_t class = 0;

    *q = (struct mo_dns_query){.id = 0};
    if (in.n < HEAD || in.n > MO_DNS_QUERY_MAX)
        return MO_EPROTO;
    flags = get16(in.p + 2);
    if (flags & IS_ANSWER)
        return MO_EPROTO;
    q->id = get16(in.p);
    q->recursion = flags & RD_BIT;
    if (flags & OPCODE)
        return MO_DNS_NOTIMP;
    additional = get16(in.p + 10);
    if (get16(in.p + 4) != 1 || get16(in.p + 6) || get16(in.p + 8) ||
        additional > 1 ||
        !read_body(mo_span_skip(in, HEAD), additional, q, &class)) {
        q->edns = false;
        return MO_DNS_FORMERR;
    }
    return class == CLASS_IN ? MO_DNS_NOERROR : MO_DNS_REFUSED;
}

/* --- writing ------------------------------------------------------------- */

static void put_record(struct mo_buf *b, const struct mo_ip *ip, uint32_t ttl)
{
    bool v4 = mo_ip_is_v4(ip);

    put16(b, NAME_AT_12);
    put16(b, v4 ? MO_DNS_A : MO_DNS_AAAA);
    put16(b, CLASS_IN);
    put16(b, ttl >> 16);
    put16(b, ttl & 0xFFFF);
    put16(b, v4 ? 4 : 16);
    mo_buf_put(b, v4 ? ip->b + 12 : ip->b, v4 ? 4 : 16);
}

static void put_opt(struct mo_buf *b)
{
    mo_buf_putc(b, 0);
    put16(b, TYPE_OPT);
    put16(b, MO_DNS_QUERY_MAX);
    put16(b, 0);
    put16(b, 0);
    put16(b, 0);
}

void mo_dns_write(struct mo_buf *b, const struct mo_dns_query *q,
                  const struct mo_dns_answer *a)
{
    bool with_ip = a->ip && a->rcode == MO_DNS_NOERROR && !a->truncated;

    put16(b, q->id);
    put16(b, IS_ANSWER | AA_BIT | RA_BIT | (q->recursion ? RD_BIT : 0) |
                 (a->truncated ? TC_BIT : 0) | (unsigned)a->rcode);
    put16(b, q->question.n > 0);
    put16(b, with_ip);
    put16(b, 0);
    put16(b, q->edns);
    mo_buf_span(b, q->question);
    if (with_ip)
        put_record(b, a->ip, a->ttl);
    if (q->edns)
        put_opt(b);
}
