/* jvalue.h - compares JSON values by meaning, not by spelling.
 *
 * 1, 1.0 and 10e-1 are one number; "a" and "\u0061" are one string; the
 * order of members does not matter. Numbers are compared as decimal text,
 * digit by digit, so integers of any length are exact and 0.1 is a tenth.
 *
 * Only for handles out of mo_json_parse(), as in json.h. No allocation, no
 * copy. Limits: exponents beyond +-10^15 count as that; an object that holds
 * a key twice equals an object with the same number of members and, for every
 * key, the same last value. */
#ifndef MO_CODEC_JSON_JVALUE_H
#define MO_CODEC_JSON_JVALUE_H

#include "codec/json/json.h"

/* The characters of a string one by one; a lone surrogate is U+FFFD. */
struct mo_jchars {
    const char *p, *end;
};

void mo_jchars(struct mo_jchars *c, struct mo_json v);
bool mo_jchars_next(struct mo_jchars *c, uint32_t *cp);
/* The character of the escape whose backslash is at p; returns the position
 * after it. */
const char *mo_jchars_escape(const char *p, const char *end, uint32_t *cp);

size_t mo_jvalue_chars(struct mo_json v); /* length in code points */
bool mo_jvalue_str_same(struct mo_json a, struct mo_json b);

/* The member with the same key as that string, the last of several. */
struct mo_json mo_jvalue_find(struct mo_json obj, struct mo_json key);

/* Numbers. cmp: <0, 0, >0. multiple: 1 yes, 0 no, -1 cannot tell (m is zero
 * or has more than 18 significant digits). */
int mo_jvalue_cmp(struct mo_json a, struct mo_json b);
bool mo_jvalue_is_int(struct mo_json v); /* 1.0 and 1e2 are integers */
int mo_jvalue_multiple(struct mo_json v, struct mo_json m);

/* 1 equal, 0 not, MO_ETOOBIG when *steps (counted down, one for about each
 * 64 bytes looked at and each member compared) is used up. */
int mo_jvalue_equal(struct mo_json a, struct mo_json b, uint64_t *steps);

#endif
