/* jregex_priv.h - between jregex_read.c, which turns a pattern into ops, and
 * jregex.c, which runs them.
 *
 * Jumps are relative and stay inside the piece they were written for, so a
 * piece may be moved or copied as bytes. */
#ifndef MO_CODEC_JSON_JREGEX_PRIV_H
#define MO_CODEC_JSON_JREGEX_PRIV_H

#include "codec/json/jregex.h"

enum { CHAR, ANY, CLASS, SPLIT, JUMP, BEGIN, END, WORD_EDGE, MATCH };

static inline bool mo_jregex_is_word(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (c >= 'a' && c <= 'z');
}

#endif
