/* doctor - looks at this machine and says what works. */
#include "app/doctor.h"

#include <stdlib.h>
#include <unistd.h>

#include "app/cli/cmd.h"

static int run(struct mo_cli *c)
{
    bool json = mo_cli_has(c, "json");
    bool colour = isatty(c->out) == 1 && !getenv("NO_COLOR");
    struct mo_config_report rep;
    struct mo_config_holder h;
    struct mo_cmd_flags flags;
    struct mo_err e = {0};
    struct mo_doctor d = {.rep = &rep};
    unsigned failed;
    struct mo_buf b;
    int rc;

    if (mo_cmd_open(c, &flags, &h, &rep, &e) == 0)
        d.cfg = h.now;
    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    failed = json ? mo_doctor_json(&d, &b) : mo_doctor_text(&d, colour, &b);
    mo_config_close(&h);
    rc = json ? mo_cmd_print_json(c, &b) : mo_cli_print(c, &b);
    return rc ? rc : failed ? MO_EXIT_FAIL : MO_EXIT_OK;
}

static const struct mo_opt opts[] = {MO_OPT_JSON};

const struct mo_cmd mo_cmd_doctor = {
    .name = "doctor",
    .summary = "Say what works on this machine and what to do about the rest",
    .text = "Looks at the configuration, the state directory, the port, what "
            "the kernel offers for boxes, Docker, Redis and keys. Nothing is "
            "changed and no key is printed. Ends with 0 if nothing failed.",
    .example = "doctor --json",
    .example_says = "prints the findings for a program to read",
    .opts = opts,
    .nopts = MO_COUNT(opts),
    .run = run,
};
