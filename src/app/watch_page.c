#include "app/watch_page.h"

#include <string.h>

void mo_watch_page_write(struct mo_watch_page *p, struct mo_span texts)
{
    unsigned odd = atomic_load(&p->version) | 1;

    if (texts.n > MO_WATCH_PAGE_MAX)
        texts.n = 0;
    atomic_store(&p->version, odd);
    atomic_thread_fence(memory_order_seq_cst);
    if (texts.n)
        memcpy(p->text, texts.p, texts.n);
    atomic_store(&p->n, texts.n);
    atomic_store(&p->version, odd + 1);
}

bool mo_watch_page_add(struct mo_watch_page *p, struct mo_span text)
{
    size_t n = atomic_load(&p->n);

    if (!text.n || text.n + 1 > MO_WATCH_PAGE_MAX - n ||
        mo_span_find(text, '\0') >= 0)
        return false;
    memcpy(p->text + n, text.p, text.n);
    p->text[n + text.n] = '\0';
    atomic_store(&p->n, n + text.n + 1);
    return true;
}

bool mo_watch_page_read(const struct mo_watch_page *p,
                        struct mo_watch_seen *seen, struct mo_buf *out,
                        bool *anew)
{
    unsigned version = atomic_load(&p->version);
    size_t n = atomic_load(&p->n), from;

    *anew = version != seen->version;
    from = *anew ? 0 : seen->n;
    if ((version & 1) || n > MO_WATCH_PAGE_MAX || (!*anew && n <= from) ||
        mo_buf_put(out, p->text + from, n - from) < 0)
        return false;
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&p->version) != version)
        return false;
    *seen = (struct mo_watch_seen){version, n};
    return true;
}
