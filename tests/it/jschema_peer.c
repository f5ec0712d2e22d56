/* jschema_peer.c - codec/jschema as a filter: a line with one JSON array
 * [schema, value] in, "valid NOTES" or "invalid NOTES text" or "too-big" out.
 * Used by jschema_diff.test.mjs to hold it against npm's ajv. */
#include <stdio.h>
#include <stdlib.h>

#include "codec/json/jschema.h"

static void check_line(struct mo_span line)
{
    static struct mo_jschema_result r;
    struct mo_jschema_opts o = {.formats = false};
    struct mo_json_doc doc;
    int rc;

    if (mo_json_parse(line, 0, &doc, NULL) < 0) {
        puts("not-json");
        return;
    }
    rc = mo_jschema_check(mo_json_at(doc.root, 0), mo_json_at(doc.root, 1), &o,
                          &r, NULL);
    if (rc < 0)
        puts("too-big");
    else if (r.valid)
        printf("valid %u\n", r.notes);
    else
        printf("invalid %u %s: %s\n", r.notes, r.errors[0].path,
               r.errors[0].text);
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n = getline(&line, &room, stdin);

    while (n > 0) {
        check_line(mo_span(line, (size_t)n));
        (void)fflush(stdout);
        n = getline(&line, &room, stdin);
    }
    free(line);
    return 0;
}
