#include "mcp/script/answer.h"

static struct mo_jw begin(struct mo_buf *params, uint64_t token, uint64_t id)
{
    struct mo_jw w = mo_jw_object(params);

    mo_jw_member_obj(&w, "arguments");
    mo_jw_member_u64(&w, "progressToken", token);
    mo_jw_member_u64(&w, "id", id);
    return w;
}

void mo_script_put_result(struct mo_buf *params, uint64_t token, uint64_t id,
                          struct mo_span result)
{
    struct mo_jw w = begin(params, token, id);

    mo_jw_member_raw(&w, "result", result);
    mo_jw_end_all(&w);
}

void mo_script_put_error(struct mo_buf *params, uint64_t token, uint64_t id,
                         const char *kind, struct mo_span text)
{
    struct mo_jw w = begin(params, token, id);

    mo_jw_member_obj(&w, "error");
    mo_jw_member_cstr(&w, "kind", kind);
    mo_jw_member(&w, "message", text);
    mo_jw_end_all(&w);
}
