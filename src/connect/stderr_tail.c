#include "connect/stderr_tail.h"

#include "base/map.h"
#include "base/mem.h"
#include "loop/loop.h"

struct tail {
    size_t len;
    bool cut;
    char text[MO_TAIL_MAX];
};

struct mo_stderr_tail {
    struct mo_loop *loop;
    struct mo_map all; /* name -> struct tail */
};

struct mo_stderr_tail *mo_stderr_tail_new(struct mo_loop *l)
{
    struct mo_stderr_tail *t = mo_new(struct mo_stderr_tail);

    if (t == NULL)
        return NULL;
    t->loop = l;
    mo_map_init(&t->all, MO_STDERR_TAIL_MAX);
    return t;
}

void mo_stderr_tail_free(struct mo_stderr_tail *t)
{
    if (t == NULL)
        return;
    mo_map_each (en, &t->all)
        mo_free(en->value);
    mo_map_fini(&t->all);
    mo_free(t);
}

static struct tail *tail_of(struct mo_stderr_tail *t, const char *server)
{
    struct tail *x = mo_map_get(&t->all, mo_span_cstr(server));

    if (x)
        return x;
    x = mo_new(struct tail);
    if (x && mo_map_put(&t->all, mo_span_cstr(server), x, NULL) < 0) {
        mo_free(x);
        x = NULL;
    }
    return x;
}

void mo_stderr_tail_add(struct mo_stderr_tail *t, const char *server,
                        struct mo_span bytes, bool first)
{
    struct tail *x = t ? tail_of(t, server) : NULL;

    if (x == NULL)
        return;
    if (first) {
        x->len = 0;
        x->cut = false;
    }
    x->cut |= bytes.n > MO_TAIL_MAX - x->len;
    x->len = mo_tail_add(x->text, x->len, MO_TAIL_MAX, bytes);
}

/* A cut line may start with half a secret, which the log would not
 * recognise. */
static struct mo_span whole_lines(const struct tail *x)
{
    struct mo_span s = {x->text, x->len};
    ptrdiff_t nl = x->cut ? mo_span_find(s, '\n') : -1;

    return nl < 0 ? s : mo_span_skip(s, (size_t)nl + 1);
}

int mo_stderr_tail_get(const struct mo_stderr_tail *t, const char *server,
                       struct mo_buf *out)
{
    const struct tail *x = t ? mo_map_get(&t->all, mo_span_cstr(server)) : NULL;
    const struct mo_log *log = t ? mo_loop_log(t->loop) : NULL;
    char text[MO_TAIL_MAX + 1];
    struct mo_span s;

    if (x == NULL)
        return 0;
    s = whole_lines(x);
    for (size_t i = 0; i < s.n; i++) /* replace NUL bytes */
        text[i] = s.p[i] ? s.p[i] : ' ';
    text[s.n] = '\0';
    for (size_t i = 0; log && i < log->nsecrets; i++)
        mo_log_blank(text, mo_span_cstr(log->secrets[i]));
    return mo_buf_puts(out, text);
}
