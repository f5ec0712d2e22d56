/* jregex.h - regular expressions with bounded running time.
 *
 * The part of ECMA-262 that `pattern` in a JSON Schema needs, over the
 * characters of a JSON string: literals, ".", classes, \d \w \s and their
 * opposites, \b, anchors, groups, alternatives, counted repeats. All
 * alternatives are followed at once (a set of states, no backtracking), so
 * matching costs at most text length times pattern length.
 *
 * Not supported (MO_EINVAL; the caller reports "not checked"): look-around,
 * back references, \p{...}, and anything over the limits below. A match
 * may begin anywhere; captures are not kept; flags are those of "u".
 *
 * No allocation: a compiled pattern is one struct of about 40 KiB. */
#ifndef MO_CODEC_JSON_JREGEX_H
#define MO_CODEC_JSON_JREGEX_H

#include "codec/json/jvalue.h"

#define MO_JREGEX_OPS_MAX    1024
#define MO_JREGEX_RANGES_MAX 512
#define MO_JREGEX_CHARS_MAX  2048 /* of the pattern's text */
#define MO_JREGEX_NEST_MAX   32

struct mo_jregex_op {
    uint32_t arg;  /* a character, or the first range of a class */
    int16_t x, y;  /* where to go on, counted from here; class: y ranges */
    uint8_t what;  /* enum in the source */
    bool opposite; /* of the class, of \b */
};

struct mo_jregex {
    struct mo_jregex_op ops[MO_JREGEX_OPS_MAX];
    struct {
        uint32_t lo, hi;
    } ranges[MO_JREGEX_RANGES_MAX];
    size_t nops, nranges;
    /* private: text while compiling, state sets while matching */
    uint32_t text[MO_JREGEX_CHARS_MAX];
    uint16_t set[2][MO_JREGEX_OPS_MAX], stack[MO_JREGEX_OPS_MAX];
    uint32_t mark[MO_JREGEX_OPS_MAX];
};

/* pattern: a JSON string. 0 or MO_EINVAL (not supported, or not a pattern). */
int mo_jregex_compile(struct mo_jregex *r, struct mo_json pattern);

/* 1 found, 0 not, MO_ETOOBIG when *steps (one a state visited) is used up. */
int mo_jregex_search(struct mo_jregex *r, struct mo_json text, uint64_t *steps);

#endif
