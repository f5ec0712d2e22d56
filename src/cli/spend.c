/* spend - prints what models have cost, from the store; and the built-in
 * prices. */
#include <stdio.h>

#include "budget/spend.h"
#include "cli/runtime_wait.h"

struct spending {
    struct mo_cmd_runtime m;
    struct mo_budget *budget;
    struct mo_buf days; /* JSON, one object per day */
};

static void fini(struct spending *s)
{
    mo_budget_close(s->budget);
    mo_buf_fini(&s->days);
    mo_cmd_runtime_close(&s->m);
}

#define autospending MO_CLEANUP(fini)

static void on_spend(void *ctx, struct mo_span json, const struct mo_err *why)
{
    struct spending *s = ctx;

    s->m.done = true;
    if (why)
        s->m.why = *why;
    else if (s->days.len > 1)
        mo_buf_putc(&s->days, ',');
    if (!why)
        mo_buf_span(&s->days, json);
}

static void put_row(struct mo_buf *b, struct mo_span day, const char *kind,
                    struct mo_json row)
{
    struct mo_json money = mo_json_get(row, "money");
    uint64_t tokens = 0, unpriced = 0;
    char name[256] = "", cost[64] = "unknown";

    (void)mo_json_str_copy(mo_json_get(row, *kind ? "id" : "name"), name,
                           sizeof(name));
    (void)mo_json_u64(mo_json_get(row, "tokens"), &tokens);
    (void)mo_json_u64(mo_json_get(row, "unpricedTokens"), &unpriced);
    if (mo_json_is(money, MO_JSON_STRING))
        (void)mo_json_str_copy(money, cost, sizeof(cost));
    mo_buf_printf(b, "%-10.*s %s%-24s %12llu %12s%s\n", (int)day.n, day.p, kind,
                  name, (unsigned long long)tokens, cost,
                  unpriced && unpriced < tokens ? " + unknown" : "");
}

static void put_text(struct mo_buf *b, struct mo_span days)
{
    struct mo_json_doc doc;
    char date[16] = "";
    size_t n = 0;

    if (mo_json_parse(days, 0, &doc, NULL) < 0)
        return;
    mo_buf_printf(b, "%-10s %-24s %12s %12s\n", "DAY (UTC)", "PERSON", "TOKENS",
                  "COST");
    mo_json_each (day, doc.root) {
        (void)mo_json_str_copy(mo_json_get(day.val, "day"), date, sizeof(date));
        mo_json_each (row, mo_json_get(day.val, "people")) {
            put_row(b, mo_span_cstr(date), "", row.val);
            n++;
        }
        mo_json_each (row, mo_json_get(day.val, "tokens"))
            put_row(b, mo_span_cstr(date), "token ", row.val);
    }
    if (!n) {
        mo_buf_reset(b);
        mo_buf_puts(b, "no model was used\n");
    }
}

static int read_days(struct spending *s, uint64_t n)
{
    mo_buf_putc(&s->days, '[');
    for (unsigned i = 0; i < n; i++) {
        s->m.done = false;
        if (mo_spend_read(s->budget, NULL, i, on_spend, s, &s->m.why) == 0)
            mo_cmd_runtime_wait(&s->m);
        if (s->m.why.code)
            return s->m.why.code;
    }
    mo_buf_putc(&s->days, ']');
    return 0;
}

static int print_prices(struct mo_cli *c)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    mo_buf_span(&b, mo_price_table());
    return mo_cli_print(c, &b);
}

int mo_run_spend(struct mo_cli *c)
{
    autospending struct spending s = {.days = {.max = MO_SPEND_TEXT_MAX}};
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    const char *days = mo_cli_get(c, "days");
    uint64_t n = 1;
    int rc;

    if (mo_cli_has(c, "prices"))
        return print_prices(c);
    if (days && (mo_span_u64(mo_span_cstr(days), &n) < 0 || n < 1 ||
                 n > MO_COUNTER_DAYS))
        return mo_cli_error(c, MO_EXIT_USAGE, "--days is 1 to %d",
                            MO_COUNTER_DAYS);
    rc = mo_cmd_runtime_open(c, &s.m, MO_RUNTIME_STORE);
    if (rc)
        return rc;
    if (mo_budget_new(s.m.loop, s.m.cfg.now, NULL, &s.budget, &s.m.why) < 0)
        return mo_cli_error(c, MO_EXIT_UNAVAIL, "%s", s.m.why.msg);
    mo_budget_store(s.budget, mo_runtime_store(s.m.runtime));
    if (read_days(&s, n) < 0)
        return mo_cli_error(c, MO_EXIT_UNAVAIL, "%s", s.m.why.msg);
    if (mo_cli_has(c, "json"))
        mo_buf_span(&b, mo_buf_view(&s.days));
    else
        put_text(&b, mo_buf_view(&s.days));
    return mo_cmd_print(c, &b);
}
