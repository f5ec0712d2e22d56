/* match.h - the small language in which rules speak about names and arguments.
 *
 * A pattern is text compared whole, case included:
 *   *      any characters but '/'
 *   **     any characters
 *   ?      one character but '/'
 *   a|b    either
 *   \x     x itself
 *
 * A condition on an argument is a pattern, or begins with a sign:
 *   = T    exactly the text T (or the number, true, false, null)
 *   ! C    not the condition C
 *   < N  <= N  > N  >= N   a number compared with N, exactly, any size
 *   absent  no such argument
 * A pattern fits a string by its characters, a number or true/false/null by
 * its JSON text; never an array or an object. A text that climbs (".." between
 * slashes) is never allowed by a pattern that does not spell ".." out: who
 * allows everything under docs does not mean docs/../secret.
 *
 * A path names arguments: members joined by dots ("a.b"), `*` for each member
 * or element, `\.` for a dot inside a name. It may lead to many values, or
 * to none. Who allows wants every one of them to fit, who denies is content
 * with one: enum mo_match_want.
 *
 * Pure; no allocation. Work is bounded: MO_MATCH_STEPS for one condition,
 * beyond that nothing fits (and who denies counts it as fitting). */
#ifndef MO_CODEC_MATCH_H
#define MO_CODEC_MATCH_H

#include "codec/json/json.h"

#define MO_MATCH_STEPS 200000u

enum mo_match_want {
    MO_MATCH_EVERY, /* at least one value, and all of them fit */
    MO_MATCH_ANY,
};

bool mo_match_text(struct mo_span pattern, struct mo_span text);
/* Append the pattern that fits exactly this text. */
int mo_match_literal(struct mo_buf *b, struct mo_span text);

/* MO_EINVAL with what is wrong: a sign without a number, a path without a
 * name, a backslash at the end. */
int mo_match_check(struct mo_span path, struct mo_span cond, struct mo_err *e);

/* args: a handle out of mo_json_parse(). path and cond were checked. */
bool mo_match_args(struct mo_json args, struct mo_span path,
                   struct mo_span cond, enum mo_match_want want);

#endif
