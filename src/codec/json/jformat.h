/* jformat.h - is this text a date, an address, an identifier?
 *
 * The formats of JSON Schema that tools use, each as its RFC writes it but
 * never stricter: a text that some reader of that RFC accepts should pass
 * here. Pure, no allocation; knows no DNS and no time zones. */
#ifndef MO_CODEC_JSON_JFORMAT_H
#define MO_CODEC_JSON_JFORMAT_H

#include "base/str.h"

/* 1: text has that format, 0: it has not, -1: unknown format. */
int mo_jformat(struct mo_span format, struct mo_span text);

#endif
