#include "gateway/router/embeddings_answer.h"

#include <math.h>

#include "base/mem.h"
#include "codec/json/json.h"

#define DEPTH 16

/* The numbers as bytes, relative to the largest: only directions are
 * compared. */
static struct embedding *pack_vector(const double *v, size_t n)
{
    struct embedding *m = NULL;
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(v[i]));
    if (most > 0)
        m = mo_alloc(sizeof(*m) + n);
    if (!m)
        return NULL;
    m->dim = (uint16_t)n;
    for (size_t i = 0; i < n; i++)
        m->v[i] = (int8_t)lround(127 * (v[i] / most));
    return m;
}

static int read_vector(struct mo_json list, size_t *dim, double *room,
                       struct embedding **out, struct mo_err *e)
{
    size_t n = 0;

    if (!mo_json_is(list, MO_JSON_ARRAY))
        return mo_fail(e, MO_EPROTO, "no vector");
    mo_json_each (it, list) {
        if (n == EMBEDDINGS_DIM_MAX || mo_json_f64(it.val, &room[n]) < 0 ||
            !isfinite(room[n]))
            return mo_fail(e, MO_EPROTO, "a vector that is no vector");
        n++;
    }
    if (n == 0 || (*dim && n != *dim))
        return mo_fail(e, MO_EPROTO, "a vector of %zu numbers instead of %zu",
                       n, *dim);
    *dim = n;
    *out = pack_vector(room, n);
    return *out ? 0 : mo_fail(e, MO_EPROTO, "a vector of zeros");
}

static int read_rows(struct mo_json data, size_t n, size_t *dim, double *room,
                     struct embedding **v, struct mo_err *e)
{
    uint64_t at = 0, index;
    int rc = 0;

    mo_json_each (it, data) {
        struct mo_json number = mo_json_get(it.val, "index");

        index = at++;
        if (mo_json_is(number, MO_JSON_NUMBER) &&
            mo_json_u64(number, &index) < 0)
            index = n;
        if (index >= n || v[index])
            return mo_fail(e, MO_EPROTO, "a vector for no text");
        rc = read_vector(mo_json_get(it.val, "embedding"), dim, room, &v[index],
                         e);
        if (rc < 0)
            return rc;
    }
    return at == n ? 0
                   : mo_fail(e, MO_EPROTO, "%llu vectors for %zu texts",
                             (unsigned long long)at, n);
}

int mo_embeddings_answer(struct mo_span body, size_t n, size_t *dim,
                         struct embedding **out, struct mo_err *e)
{
    mo_autofree double *room = mo_alloc(EMBEDDINGS_DIM_MAX * sizeof(*room));
    mo_autofree struct embedding **v =
        mo_zalloc((n + 1) * sizeof(struct embedding *));
    struct mo_json_doc doc;
    struct mo_json data;
    size_t got = *dim;
    int rc = room && v ? mo_json_parse(body, DEPTH, &doc, e)
                       : mo_fail(e, MO_ENOMEM, "embeddings");

    if (rc < 0)
        return rc;
    data = mo_json_get(doc.root, "data");
    rc = mo_json_is(data, MO_JSON_ARRAY)
             ? read_rows(data, n, &got, room, v, e)
             : mo_fail(e, MO_EPROTO, "no list of vectors");
    if (rc < 0) {
        for (size_t i = 0; i < n; i++)
            mo_free(v[i]);
        return rc;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = v[i];
    *dim = got;
    return 0;
}

float mo_embedding_near(const struct embedding *a, const struct embedding *b)
{
    int64_t dot = 0, aa = 0, bb = 0;

    if (!a || !b || a->dim != b->dim)
        return -2;
    for (size_t i = 0; i < a->dim; i++) {
        dot += a->v[i] * b->v[i];
        aa += a->v[i] * a->v[i];
        bb += b->v[i] * b->v[i];
    }
    return aa && bb ? (float)((double)dot / sqrt((double)aa * (double)bb)) : -2;
}
