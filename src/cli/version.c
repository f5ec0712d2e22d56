/* version - prints the version and how the program was built. */
#include "base/build.h"
#include "cli/cmd.h"
#include "codec/json/json.h"

int mo_run_version(struct mo_cli *c)
{
    struct mo_buf b;
    struct mo_jw w;

    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    if (!mo_cli_has(c, "json")) {
        mo_buf_puts(&b, MO_PROGRAM " " MO_VERSION " (" MO_BUILD_ARCH
                                   ", " MO_BUILD_KIND ")\n");
        return mo_cli_print(c, &b);
    }
    w = mo_jw_object(&b);
    mo_jw_member_cstr(&w, "name", MO_PROGRAM);
    mo_jw_member_cstr(&w, "version", MO_VERSION);
    mo_jw_member_cstr(&w, "arch", MO_BUILD_ARCH);
    mo_jw_member_cstr(&w, "build", MO_BUILD_KIND);
    mo_jw_member_cstr(&w, "compiler", __VERSION__);
    mo_jw_end(&w);
    return mo_cmd_print_json(c, &b);
}
