/* A query is read or refused; its answer names the same question. */
#include <stdlib.h>

#include "codec/dns.h"

static void expect(bool ok)
{
    if (!ok)
        abort();
}

/* An answer, read as a query, has the same question. */
static void check_answer(const struct mo_dns_query *q, struct mo_buf *b)
{
    struct mo_dns_query again;

    expect(!mo_buf_err(b) && b->len >= 12 && b->len <= MO_DNS_ANSWER_MAX);
    expect(mo_dns_read(mo_buf_view(b), &again) == MO_EPROTO);
    b->p[2] = (char)(b->p[2] & 0x7F);
    if (q->question.n == 0)
        return;
    expect(mo_dns_read(mo_buf_view(b), &again) == MO_DNS_NOERROR);
    expect(strcmp(again.name, q->name) == 0 && again.type == q->type);
    expect(again.id == q->id && again.edns == q->edns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct mo_ip ip = {{[10] = 0xFF, [11] = 0xFF, [15] = 1}};
    mo_autobuf struct mo_buf b = {.max = MO_DNS_ANSWER_MAX};
    struct mo_dns_query q;
    int rc = mo_dns_read(mo_span((const char *)data, n), &q);

    if (rc < 0)
        return 0;
    expect(q.name_len <= MO_DNS_NAME_MAX && q.name[q.name_len] == '\0');
    if (rc == MO_DNS_NOERROR) {
        mo_dns_write(&b, &q, &(struct mo_dns_answer){.rcode = 3});
        check_answer(&q, &b);
        mo_buf_reset(&b);
        mo_dns_write(&b, &q, &(struct mo_dns_answer){.ip = &ip});
        expect(!mo_buf_err(&b));
    }
    return 0;
}
