/* The rule language. Input: a path, a condition and arguments, one per line;
 * the arguments may have further lines.
 *
 * Beyond not crashing: a condition that holds for every value holds for one of
 * them, so a call that a rule would allow, the same rule would deny; and the
 * literal pattern of a text fits that text. */
#include <stdlib.h>

#include "policy/rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_literal(struct mo_span text)
{
    struct mo_buf b;

    mo_buf_init(&b, 1 << 20);
    if (mo_match_literal(&b, text) == 0 &&
        !mo_match_text(mo_buf_view(&b), text, MO_MATCH_ANY))
        abort();
    mo_buf_fini(&b);
}

static bool fits(const struct mo_rule_arg *arg, struct mo_span names,
                 enum mo_action action, const struct mo_subject *s)
{
    const struct mo_rule r = {.server = names,
                              .tool = names,
                              .args = arg,
                              .nargs = 1,
                              .action = action};
    const struct mo_rules all = {&r, 1};
    struct mo_verdict v;

    if (mo_rule_check(&r, NULL) < 0)
        return false;
    v = mo_rules_judge(&all, NULL, 0, MO_ACTION_ASK, s);
    if (v.rule && v.action != action)
        abort();
    return v.rule && mo_rule_misses(&r, s, NULL) == MO_RULE_FITS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mo_span rest = mo_span((const char *)data, size);
    struct mo_rule_arg arg = {.path = mo_span_cut(&rest, '\n')};
    struct mo_subject s = {.tool = arg.path, .server = arg.path};
    struct mo_json_doc doc;

    arg.cond = mo_span_cut(&rest, '\n');
    check_literal(arg.path);
    (void)mo_match_text(arg.cond, arg.path, MO_MATCH_EVERY);
    if (!rest.p || mo_json_parse(rest, 64, &doc, NULL) < 0)
        return 0;
    s.args = doc.root;
    if (mo_match_check(arg.path, arg.cond, NULL) == 0 &&
        mo_match_args(s.args, arg.path, arg.cond, MO_MATCH_EVERY) &&
        !mo_match_args(s.args, arg.path, arg.cond, MO_MATCH_ANY))
        abort();
    if (fits(&arg, mo_span(NULL, 0), MO_ACTION_ALLOW, &s) &&
        !fits(&arg, mo_span(NULL, 0), MO_ACTION_DENY, &s))
        abort();
    (void)fits(&arg, arg.cond, MO_ACTION_ASK, &s);
    return 0;
}
