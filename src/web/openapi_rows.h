/* openapi_rows.h - the row format of the tables behind openapi.json; private to
 * the files with such tables.
 *
 * Schemas are JSON with ' for ", to be readable. */
#ifndef MO_WEB_OPENAPI_ROWS_H
#define MO_WEB_OPENAPI_ROWS_H

#include <stddef.h>

struct mo_openapi_row {
    const char *path, *method, *summary;
    const char *params; /* elements of the array, or "" */
    const char *type;   /* of the answer */
    const char *schema; /* of the answer; NULL: text */
};

struct mo_openapi_schema {
    const char *name, *schema;
};

struct mo_openapi_part {
    const struct mo_openapi_row *rows;
    size_t nrows;
    const struct mo_openapi_schema *schemas;
    size_t nschemas;
};

extern const struct mo_openapi_part mo_openapi_mcp; /* openapi_mcp.c */

#define Q(name, type, says)                                                    \
    "{'name':'" name "','in':'query','description':'" says                     \
    "','schema':{'type':'" type "'}}"
#define ID                                                                     \
    "{'name':'id','in':'path','required':true,'description':'of the session'," \
    "'schema':{'type':'string','pattern':'^[A-Za-z0-9_-]{1,64}$'}}"
#define NAME                                                                   \
    "{'name':'name','in':'path','required':true,'description':'of the "        \
    "server','schema':{'type':'string'}}"
#define TOOL                                                                   \
    "{'name':'tool','in':'path','required':true,'description':'as its server " \
    "calls it','schema':{'type':'string'}}"
#define REF(name) "{'$ref':'#/components/schemas/" name "'}"
#define JSON_TYPE "application/json"

#endif
