/* otlp.h - writes messages of OTLP, the OpenTelemetry protocol, in both of its
 * encodings.
 *
 * A caller writes a message once, with the number of each field and its JSON
 * name; the writer emits protobuf or JSON. JSON follows OTLP's own rules: trace
 * and span ids are hexadecimal, 64 bit numbers are strings, enumerations are
 * numbers. Fields without a value are left out by the caller.
 *
 * Pure: no I/O. Errors are the buffer's. Texts must be UTF-8; invalid ones
 * are written with '?' in place of every byte outside ASCII, because protobuf
 * refuses a message with one. */
#ifndef MO_TRACE_OTLP_H
#define MO_TRACE_OTLP_H

#include "codec/json/json.h"

#define MO_OTLP_DEPTH 16

enum mo_otlp_encoding { MO_OTLP_PROTOBUF, MO_OTLP_JSON };

struct mo_otlp {
    struct mo_buf *b;
    bool json;
    struct mo_jw w;           /* JSON */
    size_t at[MO_OTLP_DEPTH]; /* protobuf: where the open messages begin */
    unsigned depth;
};

/* Opens the outermost message; mo_otlp_fini() closes it. */
void mo_otlp_init(struct mo_otlp *o, struct mo_buf *b,
                  enum mo_otlp_encoding encoding);
int mo_otlp_fini(struct mo_otlp *o);

/* A field that is a message. mo_otlp_end() closes it. */
void mo_otlp_msg(struct mo_otlp *o, unsigned field, const char *name);
/* A field that is a list: its items are messages or values with the number of
 * the field. mo_otlp_list_end() closes it. */
void mo_otlp_list(struct mo_otlp *o, const char *name);
void mo_otlp_item(struct mo_otlp *o, unsigned field);
void mo_otlp_end(struct mo_otlp *o);
void mo_otlp_list_end(struct mo_otlp *o);

/* name NULL: a value in a list. */
void mo_otlp_text(struct mo_otlp *o, unsigned field, const char *name,
                  struct mo_span s);
void mo_otlp_id(struct mo_otlp *o, unsigned field, const char *name,
                const uint8_t *p, size_t n);
void mo_otlp_fixed64(struct mo_otlp *o, unsigned field, const char *name,
                     uint64_t v);
void mo_otlp_fixed32(struct mo_otlp *o, unsigned field, const char *name,
                     uint32_t v);
void mo_otlp_int64(struct mo_otlp *o, unsigned field, const char *name,
                   int64_t v);
/* An enumeration, a uint32 or a bool. */
void mo_otlp_number(struct mo_otlp *o, unsigned field, const char *name,
                    uint32_t v);
void mo_otlp_flag(struct mo_otlp *o, unsigned field, const char *name, bool v);
void mo_otlp_double(struct mo_otlp *o, unsigned field, const char *name,
                    double v);

/* A field that is a list of numbers. */
void mo_otlp_fixed64s(struct mo_otlp *o, unsigned field, const char *name,
                      const uint64_t *v, size_t n);
void mo_otlp_doubles(struct mo_otlp *o, unsigned field, const char *name,
                     const double *v, size_t n);

/* Items of a list of attributes, which has that number. */
void mo_otlp_attr(struct mo_otlp *o, unsigned field, const char *key,
                  struct mo_span value);
void mo_otlp_attr_int(struct mo_otlp *o, unsigned field, const char *key,
                      int64_t value);
void mo_otlp_attr_double(struct mo_otlp *o, unsigned field, const char *key,
                         double value);
/* A list with one text. */
void mo_otlp_attr_one(struct mo_otlp *o, unsigned field, const char *key,
                      struct mo_span value);

#endif
