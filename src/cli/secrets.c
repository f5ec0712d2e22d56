/* secrets set, list, remove, check - manages the secret store.
 *
 * A value is read from standard input only, because other users can read
 * command lines and the shell keeps them in its history. It is wiped after it
 * was stored, and no command prints a value. */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cmd.h"
#include "codec/json/json.h"
#include "config/reference.h"
#include "secrets/key.h"
#include "secrets/system.h"

#define CTRL_C     '\x03'
#define PRINT_DATE 16 /* 2026-11-15T09:20 */

struct opened {
    struct mo_cmd_config cfg;
    struct mo_secrets *s; /* NULL: there is no store */
};

static int open_store(struct mo_cli *c, struct opened *o, bool make)
{
    struct mo_err e = {0};
    int rc = mo_cmd_load(c, &o->cfg);

    if (rc == 0 && mo_secrets_for(o->cfg.now, make, &o->s, &e) < 0)
        rc = mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    return rc;
}

static void close_store(struct opened *o)
{
    mo_secrets_close(o->s);
    mo_cmd_close(&o->cfg);
}

#define autostore MO_CLEANUP(close_store)

/* --- set ----------------------------------------------------------------- */

/* Reads until the end of the input, or of the line. */
static int read_input(struct mo_buf *b, bool line, struct mo_err *e)
{
    /* One allocation: growing would leave copies. */
    char *room = mo_buf_room(b, MO_SECRET_MAX + 2);

    if (!room)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    (void)mlock(b->p, b->cap);
    while (b->len < MO_SECRET_MAX + 2) {
        ssize_t n =
            read(STDIN_FILENO, b->p + b->len, MO_SECRET_MAX + 2 - b->len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mo_fail_sys(e, "standard input");
        mo_buf_add(b, (size_t)n);
        if (n == 0 || (line && mo_span_find(mo_buf_view(b), '\n') >= 0))
            return 0;
        if (line && mo_span_find(mo_buf_view(b), CTRL_C) >= 0)
            return mo_fail(e, MO_ECANCELED, "nothing was changed");
    }
    return 0;
}

/* Reads from the terminal without echo. Control-C ends the line instead of the
 * program, which must restore the terminal first. */
static int read_terminal(struct mo_cli *c, struct mo_buf *b, struct mo_err *e)
{
    struct termios was, quiet;
    int rc;

    if (tcgetattr(STDIN_FILENO, &was) < 0)
        return mo_fail_sys(e, "terminal");
    quiet = was;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ISIG);
    quiet.c_cc[VEOL] = CTRL_C;
    (void)dprintf(c->err, "Value of %s (not shown): ", c->args[0]);
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet) < 0)
        return mo_fail_sys(e, "terminal");
    rc = read_input(b, true, e);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &was);
    (void)dprintf(c->err, "\n");
    return rc;
}

static void drop_newline(struct mo_buf *b)
{
    if (b->len && b->p[b->len - 1] == '\n')
        b->len--;
    if (b->len && b->p[b->len - 1] == '\r')
        b->len--;
}

static int set_value(struct mo_cli *c, struct opened *o, struct mo_buf *b)
{
    struct mo_err e = {0};
    int rc = isatty(STDIN_FILENO) == 1 ? read_terminal(c, b, &e)
                                       : read_input(b, false, &e);

    if (rc == 0) {
        drop_newline(b);
        rc = mo_secrets_put(o->s, mo_span_cstr(c->args[0]), mo_buf_view(b), &e);
    }
    return rc < 0 ? mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg) : 0;
}

int mo_run_secrets_set(struct mo_cli *c)
{
    autostore struct opened o = {.s = NULL};
    mo_autowipe struct mo_buf b = {.max = MO_SECRET_MAX + 2};
    int rc;

    if (!mo_secret_name_ok(mo_span_cstr(c->args[0])))
        return mo_cli_error(c, MO_EXIT_USAGE,
                            "a secret's name has 1 to %zu letters, digits, "
                            "'_', '-' and '.'",
                            MO_SECRET_NAME_MAX);
    rc = open_store(c, &o, true);
    return rc ? rc : set_value(c, &o, &b);
}

/* --- list ---------------------------------------------------------------- */

static void list_json(const struct mo_secrets *s, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_array(b);

    for (size_t i = 0; i < mo_secrets_count(s); i++) {
        struct mo_secret_info in = mo_secrets_at(s, i);
        char date[MO_ISO8601_MAX];

        mo_wall_format(in.set_ms, date);
        mo_jw_obj(&w);
        mo_jw_member(&w, "name", in.name);
        mo_jw_member_cstr(&w, "set", date);
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
}

static void list_text(const struct mo_secrets *s, struct mo_buf *b)
{
    if (mo_secrets_count(s) == 0)
        mo_buf_puts(b, "there are no secrets; `" MO_PROGRAM
                       " secrets set NAME` stores one\n");
    for (size_t i = 0; i < mo_secrets_count(s); i++) {
        struct mo_secret_info in = mo_secrets_at(s, i);
        char date[MO_ISO8601_MAX];

        mo_wall_format(in.set_ms, date);
        mo_buf_printf(b, "%-32.*s %.*sZ\n", (int)in.name.n, in.name.p,
                      PRINT_DATE, date);
    }
}

int mo_run_secrets_list(struct mo_cli *c)
{
    autostore struct opened o = {.s = NULL};
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    int rc = open_store(c, &o, false);

    if (rc)
        return rc;
    if (mo_cli_has(c, "json"))
        list_json(o.s, &b);
    else
        list_text(o.s, &b);
    return mo_cmd_print(c, &b);
}

/* --- remove -------------------------------------------------------------- */

int mo_run_secrets_remove(struct mo_cli *c)
{
    autostore struct opened o = {.s = NULL};
    struct mo_err e = {0};
    int rc = open_store(c, &o, false);

    if (rc)
        return rc;
    if (!o.s)
        rc =
            mo_fail(&e, MO_ENOTFOUND, "there is no secret '%.80s'", c->args[0]);
    else
        rc = mo_secrets_drop(o.s, mo_span_cstr(c->args[0]), &e);
    return rc < 0 ? mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg) : 0;
}

/* --- check --------------------------------------------------------------- */

struct check {
    const struct mo_config *cfg;
    const struct mo_secrets *s;
    struct mo_buf *b;
    size_t missing, found;
    bool used[MO_SECRETS_MAX];
};

static void note_used(struct check *k, struct mo_span name)
{
    for (size_t i = 0; i < mo_secrets_count(k->s); i++) {
        if (mo_span_eq(mo_secrets_at(k->s, i).name, name))
            k->used[i] = true;
    }
}

static void check_text(void *ctx, const char *path, const char *text)
{
    struct mo_span rest = mo_span_cstr(text);
    struct check *k = ctx;
    struct mo_reference_part part;

    while (mo_reference_next(&rest, &part, NULL) > 0) {
        if (part.kind != MO_REFERENCE_SECRET)
            continue;
        if (mo_secrets_has(k->s, part.text)) {
            note_used(k, part.text);
            k->found++;
            continue;
        }
        if (mo_secret_system_has(k->cfg, part.text)) {
            k->found++;
            continue;
        }
        k->missing++;
        mo_buf_printf(k->b,
                      "%s: ${secret:%.*s} has no value; set it: " MO_PROGRAM
                      " secrets set %.*s\n",
                      path, (int)part.text.n, part.text.p, (int)part.text.n,
                      part.text.p);
    }
}

static void report(struct check *k)
{
    for (size_t i = 0; i < mo_secrets_count(k->s); i++) {
        struct mo_span name = mo_secrets_at(k->s, i).name;

        if (!k->used[i])
            mo_buf_printf(k->b, "%.*s is stored and nothing refers to it\n",
                          (int)name.n, name.p);
    }
    if (k->missing == 0)
        mo_buf_printf(k->b, "ok: %zu reference%s, each has a value\n", k->found,
                      k->found == 1 ? "" : "s");
}

int mo_run_secrets_check(struct mo_cli *c)
{
    autostore struct opened o = {.s = NULL};
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    int rc = open_store(c, &o, false);
    struct check k = {.cfg = o.cfg.now, .s = o.s, .b = &b};

    if (rc)
        return rc;
    mo_config_texts(k.cfg, check_text, &k);
    report(&k);
    rc = mo_cli_print(c, &b);
    return rc == 0 && k.missing ? MO_EXIT_FAIL : rc;
}
