/* glob.h - file name patterns.
 *
 * `*` and `?` stay within a name, `**` crosses directories, `[a-z]`, `[!x]`,
 * `{a,b}`. A pattern without a slash is matched against the last component, any
 * other against the whole path. Work is bounded: a pattern that exceeds its
 * budget matches nothing. */
#ifndef TB_GLOB_H
#define TB_GLOB_H

#include "base/str.h"

bool tb_glob(struct mo_span pattern, struct mo_span path);

#endif
