/* json_plain.c - the scanner and the cursor once more, compiled without
 * vectors and under other names, to be compared with the real ones.
 *
 * Types keep their layout, so a test hands the same structs to both. */
#define MO_VEC_PLAIN

#define mo_jscan_init         plain_jscan_init
#define mo_jscan_value        plain_jscan_value
#define mo_jscan_enter        plain_jscan_enter
#define mo_jscan_member       plain_jscan_member
#define mo_jscan_end          plain_jscan_end
#define mo_jscan_fail         plain_jscan_fail
#define mo_json_skip_string   plain_json_skip_string
#define mo_json_parse         plain_json_parse
#define mo_json_parse_members plain_json_parse_members
#define mo_json_type          plain_json_type
#define mo_json_iter          plain_json_iter
#define mo_json_next          plain_json_next
#define mo_json_more          plain_json_more
#define mo_json_key           plain_json_key
#define mo_json_value         plain_json_value
#define mo_json_enter         plain_json_enter
#define mo_json_leave         plain_json_leave
#define mo_json_get           plain_json_get
#define mo_json_find          plain_json_find
#define mo_json_first         plain_json_first
#define mo_json_at            plain_json_at
#define mo_json_len           plain_json_len
#define mo_json_str_eq        plain_json_str_eq
#define mo_json_str_same      plain_json_str_same
#define mo_json_has_nl        plain_json_has_nl
#define mo_json_str           plain_json_str
#define mo_json_str_buf       plain_json_str_buf
#define mo_json_str_copy      plain_json_str_copy
#define mo_json_str_in        plain_json_str_in
#define mo_json_i64           plain_json_i64
#define mo_json_u64           plain_json_u64
#define mo_json_f64           plain_json_f64
#define mo_json_bool          plain_json_bool
#define mo_json_where         plain_json_where

#include "codec/json/jscan.c"
#include "codec/json/json.c"
