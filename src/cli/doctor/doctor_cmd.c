/* doctor - checks this machine and reports what works. */
#include "cli/doctor/doctor.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/runtime_wait.h"
#include "codec/json/json.h"
#include "connect/box_probe.h"

/* --- the sandbox --------------------------------------------------------- */

struct probing {
    struct mo_buf *b;
    struct mo_jw w;
    bool json, colour;
    unsigned passed, failed;
};

static void put_row(void *ctx, const struct mo_box_probe_row *r)
{
    struct probing *p = ctx;
    const char *paint = r->pass     ? "\x1b[32m"
                        : r->absent ? "\x1b[33m"
                                    : "\x1b[31m";
    const char *word = r->pass ? "pass" : r->absent ? "none" : "FAIL";

    p->passed += r->pass;
    p->failed += !r->pass && !r->absent;
    if (!p->json) {
        mo_buf_printf(p->b, "%s%s%s  %-7s %-16s %s%s%s\n",
                      p->colour ? paint : "", word, p->colour ? "\x1b[0m" : "",
                      r->driver, r->control, r->promise,
                      r->detail[0] ? ": " : "", r->detail);
        return;
    }
    mo_jw_obj(&p->w);
    mo_jw_member_cstr(&p->w, "driver", r->driver);
    mo_jw_member_cstr(&p->w, "control", r->control);
    mo_jw_member_cstr(&p->w, "promise", r->promise);
    mo_jw_member_bool(&p->w, "pass", r->pass);
    mo_jw_member_bool(&p->w, "absent", r->absent);
    mo_jw_member_cstr(&p->w, "detail", r->detail[0] ? r->detail : NULL);
    mo_jw_end(&p->w);
}

static int run_sandbox(struct mo_cli *c)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    struct probing p = {.b = &b,
                        .json = mo_cli_has(c, "json"),
                        .colour = isatty(c->out) == 1 && !getenv("NO_COLOR")};
    mo_autoruntime struct mo_cmd_runtime m = {.c = c};
    struct mo_err e = {0};
    int rc = mo_cmd_runtime_load(c, &m);

    mo_jw_init(&p.w, &b);
    if (p.json)
        mo_jw_arr(&p.w);
    if (rc == 0 && mo_box_probe(m.loop, m.cfg.now, put_row, &p, &e) < 0)
        rc = mo_cli_error(c, MO_EXIT_UNAVAIL, "%s", e.msg);
    if (rc)
        return rc;
    if (p.json)
        mo_jw_end(&p.w);
    else
        mo_buf_printf(&b, "\n%u passed, %u failed\n", p.passed, p.failed);
    rc = mo_cmd_print(c, &b);
    return rc ? rc : p.failed ? MO_EXIT_FAIL : MO_EXIT_OK;
}

/* --- everything else ----------------------------------------------------- */

int mo_run_doctor(struct mo_cli *c)
{
    bool json = mo_cli_has(c, "json");
    bool colour = isatty(c->out) == 1 && !getenv("NO_COLOR");
    struct mo_config_report rep;
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    struct mo_err e = {0};
    struct mo_doctor d = {.rep = &rep};
    unsigned failed;
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    int rc;

    if (mo_cli_has(c, "sandbox"))
        return run_sandbox(c);
    if (mo_cmd_open(c, &cfg, &rep, &e) == 0)
        d.cfg = cfg.now;
    failed = json ? mo_doctor_json(&d, &b) : mo_doctor_text(&d, colour, &b);
    rc = mo_cmd_print(c, &b);
    return rc ? rc : failed ? MO_EXIT_FAIL : MO_EXIT_OK;
}
