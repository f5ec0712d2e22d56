/* json_plain.h - what json_plain.c gives: the rooms without vectors. */
#ifndef MO_TEST_JSON_PLAIN_H
#define MO_TEST_JSON_PLAIN_H

#include "codec/json/json.h"

int plain_json_parse(struct mo_span text, int depth, struct mo_json_doc *out,
                     struct mo_err *e);
void plain_json_iter(struct mo_json_iter *it, struct mo_json v);
bool plain_json_next(struct mo_json_iter *it, struct mo_json *key,
                     struct mo_json *val);
size_t plain_json_len(struct mo_json v);

#endif
