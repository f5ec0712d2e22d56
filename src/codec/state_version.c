#include "codec/state_version.h"

#include <stdio.h>

#include "codec/json/json.h"

#define FORMAT_MAX 1000000

void mo_state_version_put(struct mo_buf *b, unsigned format, unsigned reads)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_u64(&w, "format", format);
    mo_jw_member_u64(&w, "reads", reads);
    mo_jw_member_cstr(&w, "program", MO_VERSION);
    mo_jw_end(&w);
}

static bool read_number(struct mo_json v, unsigned *out)
{
    uint64_t n = 0;

    if (mo_json_u64(v, &n) < 0 || n == 0 || n > FORMAT_MAX)
        return false;
    *out = (unsigned)n;
    return true;
}

int mo_state_version_read(struct mo_span record, struct mo_state_version *out,
                          struct mo_err *e)
{
    static const char *const names[] = {"format", "reads", "program"};
    struct mo_json v[MO_COUNT(names)];

    *out = (struct mo_state_version){.format = 0};
    if (record.n > MO_STATE_RECORD_MAX ||
        mo_json_parse_members(record, names, MO_COUNT(names), v, NULL) < 0 ||
        !read_number(v[0], &out->format) || !read_number(v[1], &out->reads) ||
        out->reads > out->format)
        return mo_fail(e, MO_EINVAL, "the record of its version is not valid");
    (void)mo_json_str_copy(v[2], out->program, sizeof(out->program));
    if (!out->program[0] ||
        !mo_span_only(mo_span_cstr(out->program), MO_ALNUM ".+-"))
        (void)snprintf(out->program, sizeof(out->program), "unknown");
    return 0;
}

int mo_state_version_judge(const struct mo_state_version *v, unsigned ours,
                           const char *what, struct mo_err *e)
{
    if (v->format <= ours || (v->format == ours + 1 && v->reads <= ours))
        return 0;
    return mo_fail(e, MO_EINVAL,
                   "%.90s: written by version %.20s (format %u); version "
                   "" MO_VERSION " knows format %u: start the newer version, "
                   "or restore a backup of this one (docs/upgrade.md)",
                   what, v->program, v->format, ours);
}
