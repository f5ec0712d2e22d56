#include "budget/price.h"

#include "codec/money.h"

/* data/prices.json */
extern const char mo_helper_prices[], mo_helper_prices_end[];

struct mo_span mo_price_table(void)
{
    return mo_span(mo_helper_prices,
                   (size_t)(mo_helper_prices_end - mo_helper_prices));
}

/* Length of the name + 1 if it fits the model, 0 if not; an exact name is
 * better than every pattern. */
static size_t fit(struct mo_span name, struct mo_span model)
{
    if (mo_span_eq(name, model))
        return SIZE_MAX;
    if (!name.n || name.p[name.n - 1] != '*' ||
        !mo_span_starts(model, mo_span_head(name, name.n - 1)))
        return 0;
    return name.n;
}

static bool find_configured(const struct mo_config *c, struct mo_span model,
                            struct mo_config_price *out)
{
    size_t best = 0;

    for (size_t i = 0; i < c->prices.n; i++) {
        size_t n = fit(mo_span_cstr(c->prices.v[i].name), model);

        if (n > best) {
            best = n;
            *out = c->prices.v[i];
        }
    }
    return best > 0;
}

static int64_t amount_of(struct mo_json row, const char *key)
{
    struct mo_json v = mo_json_get(row, key);
    int64_t n = 0;

    return v.p && mo_money_read(mo_json_text(v), &n) == 0 ? n : 0;
}

static bool find_built_in(struct mo_span model, struct mo_config_price *out)
{
    struct mo_json best = {NULL, 0};
    struct mo_json_doc doc;
    size_t most = 0;

    if (mo_json_parse(mo_price_table(), 0, &doc, NULL) < 0)
        return false;
    mo_json_each (it, mo_json_get(doc.root, "models")) {
        char name[128];
        size_t n = mo_json_str_copy(it.key, name, sizeof(name)) == 0
                       ? fit(mo_span_cstr(name), model)
                       : 0;

        if (n > most) {
            most = n;
            best = it.val;
        }
    }
    *out = (struct mo_config_price){
        .input = amount_of(best, "input"),
        .output = amount_of(best, "output"),
        .cache_read = amount_of(best, "cacheRead"),
        .cache_write = amount_of(best, "cacheWrite"),
    };
    return most > 0;
}

bool mo_price_find(const struct mo_config *c, struct mo_span model,
                   struct mo_config_price *out)
{
    return find_configured(c, model, out) || find_built_in(model, out);
}

static uint64_t cut(uint64_t n)
{
    return n < MO_USAGE_MAX ? n : MO_USAGE_MAX;
}

uint64_t mo_usage_tokens(const struct mo_usage *u)
{
    return cut(cut(u->input) + cut(u->output));
}

/* n tokens, rounded up. At most 1000 * 10^12 + 10^6 * 10^12 / 10^6. */
static int64_t cost_of(uint64_t n, int64_t price)
{
    uint64_t rest = n % MO_MONEY_ONE * (uint64_t)price;

    return (int64_t)(n / MO_MONEY_ONE * (uint64_t)price +
                     (rest + MO_MONEY_ONE - 1) / MO_MONEY_ONE);
}

int64_t mo_price_cost(const struct mo_config_price *p, const struct mo_usage *u)
{
    uint64_t input = cut(u->input), read = cut(u->cache_read),
             made = cut(u->cache_write), fresh = 0;

    read = read < input ? read : input;
    made = made < input - read ? made : input - read;
    fresh = input - read - made;
    return cost_of(fresh, p->input) + cost_of(cut(u->output), p->output) +
           cost_of(read, p->cache_read ? p->cache_read : p->input) +
           cost_of(made, p->cache_write ? p->cache_write : p->input);
}
