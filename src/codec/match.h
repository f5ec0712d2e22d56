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
 *   absent  no such argument; `! absent`: there is one
 * A pattern fits a string by its characters, a number or true/false/null by
 * its JSON text; a pattern that is a number fits every spelling of it. A text
 * that climbs (".." between slashes) is never allowed by a pattern that does
 * not spell ".." out: who allows everything under docs does not mean
 * docs/../secret.
 *
 * A path names arguments: members joined by dots ("a.b"), `*` for each member
 * or element, `\.` for a dot inside a name. It may lead to many values, or
 * to none. MO_MATCH_EVERY, for rules that allow, needs at least one value and
 * every one must fit. MO_MATCH_ANY, for rules that deny or ask, is content with
 * one.
 *
 * A value that cannot be read never fits for MO_MATCH_EVERY and always fits for
 * MO_MATCH_ANY, also behind `!`: a missing value, null, a comparison with
 * something that is no number, an array or object on the way of the path that
 * is none. For MO_MATCH_ANY an array or object at the end of the path stands
 * for every value in it and every name of a member; an empty one cannot be
 * read. For MO_MATCH_EVERY it never fits.
 *
 * Pure; no allocation. Work is bounded: after MO_MATCH_STEPS for one condition
 * the value counts as unreadable. */
#ifndef MO_CODEC_MATCH_H
#define MO_CODEC_MATCH_H

#include "codec/json/json.h"

#define MO_MATCH_STEPS 200000u

enum mo_match_want {
    MO_MATCH_EVERY, /* at least one value, and all of them fit */
    MO_MATCH_ANY,
};

/* A text that takes too many steps fits for MO_MATCH_ANY only. */
bool mo_match_text(struct mo_span pattern, struct mo_span text,
                   enum mo_match_want want);
/* Append the pattern that fits exactly this text. */
int mo_match_literal(struct mo_buf *b, struct mo_span text);

/* MO_EINVAL with what is wrong: a sign without a number, a path without a
 * name, a backslash at the end. */
int mo_match_check(struct mo_span path, struct mo_span cond, struct mo_err *e);

/* args: a handle out of mo_json_parse(). path and cond were checked. */
bool mo_match_args(struct mo_json args, struct mo_span path,
                   struct mo_span cond, enum mo_match_want want);
/* True if args has the first member of the path. */
bool mo_match_has(struct mo_json args, struct mo_span path);

#endif
