/* client_skills.c - the scenarios of the Skills extension (SEP-2640).
 *
 * The client lists the skills and checks their entries. Only where a scenario
 * is about loading it reads SKILL.md, and the other files if that one agrees
 * with its entry; a file that does not is refused, which is success here. */
#include "conformance/client.h"

#include <stdio.h>

#include "mcp/skill.h"
#include "mcp/skill_file.h"

#define TEXT_MAX ((size_t)1024 * 1024)
#define REFUSED  1

/* One file: 0, REFUSED, or the error of the request. */
static int load_file(struct driver *d, struct mo_json entry, struct mo_json uri)
{
    mo_autobuf struct mo_buf params = {.max = TEXT_MAX};
    mo_autobuf struct mo_buf name = {.max = TEXT_MAX};
    mo_autobuf struct mo_buf bytes = {.max = MO_SKILL_FILE_MAX};
    struct mo_call_opts o = {.name = {NULL, 0}};
    struct mo_err e = {0};
    struct mo_json out;
    int rc = mo_json_str_buf(uri, &name);

    o.name = mo_buf_view(&name);
    mo_buf_printf(&params, "{\"uri\":%.*s}", (int)uri.n, uri.p);
    if (rc == 0)
        rc = driver_call(d, "resources/read", mo_buf_view(&params), &o, &out,
                         &e);
    if (rc < 0) {
        (void)fprintf(stderr, "resources/read: %s\n", e.msg);
        return rc;
    }
    if (mo_skill_file_bytes(out, o.name, &bytes, &e) == 0 &&
        mo_skill_verify(entry, o.name, mo_buf_view(&bytes), &e) == 0)
        return 0;
    (void)fprintf(stderr, "%.*s is refused: %s\n", (int)o.name.n, o.name.p,
                  e.msg);
    return REFUSED;
}

/* SKILL.md first; without it nothing else is of use. */
static int load_skill(struct driver *d, struct mo_json entry)
{
    struct mo_json self = mo_json_get(entry, "uri");
    int rc = load_file(d, entry, self);

    mo_json_each_while (m, mo_json_get(entry, "resources"), rc == 0) {
        struct mo_json uri = mo_json_get(m.val, "uri");

        if (!mo_span_eq(mo_json_text(uri), mo_json_text(self)))
            rc = load_file(d, entry, uri);
    }
    return rc < 0 ? rc : 0;
}

static int list_skills(struct driver *d, bool load)
{
    mo_autobuf struct mo_buf keep = {.max = TEXT_MAX};
    struct mo_err e = {0};
    struct mo_json all;
    int rc = driver_list(d, "skills/list", "skills", &all, &e);

    if (rc == 0)
        rc = mo_buf_span(&keep, mo_json_text(all));
    if (rc < 0)
        (void)fprintf(stderr, "skills/list: %s\n", e.msg);
    all = (struct mo_json){keep.p, keep.len};
    mo_json_each_while (m, all, rc == 0) {
        const char *why = mo_skill_check(m.val);

        if (why)
            (void)fprintf(stderr, "a skill is left out: %s\n", why);
        else if (load)
            rc = load_skill(d, m.val);
    }
    return rc;
}

int skills_scenario(struct driver *d, const char *name)
{
    struct mo_err e = {0};
    int rc;

    if (!mo_span_starts(mo_span_cstr(name), MO_SPAN("sep-2640-client-")))
        return NO_SUCH_SCENARIO;
    rc = driver_open(d, &e);
    if (rc < 0)
        (void)fprintf(stderr, "not open: %s\n", e.msg);
    else
        rc = list_skills(d, strcmp(name, "sep-2640-client-no-prefetch") != 0);
    driver_close(d);
    return rc;
}
