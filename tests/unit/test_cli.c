#include "cli/cli.h"

#include "cli/help_text.h"
#include "config/keys.h"
#include "mo_test.h"

#define WORDS_MAX 40

/* Cut a line at blanks into an argv with a program name in front. */
static int split(char *line, char **argv)
{
    int argc = 1;

    argv[0] = line; /* never read */
    for (char *p = line; *p;) {
        argv[argc++] = p;
        while (*p && *p != ' ')
            p++;
        if (*p)
            *p++ = '\0';
    }
    return argc;
}

static int parse(struct mo_cli *c, const char *line, char *copy, size_t n,
                 struct mo_err *e)
{
    char *argv[WORDS_MAX];
    int argc;

    (void)snprintf(copy, n, "%s", line);
    argc = split(copy, argv);
    return mo_cli_parse(c, &mo_commands, argc, argv, e);
}

static const struct {
    const char *line;
    const char *cmd;         /* NULL: none */
    const char *opt, *value; /* NULL: do not look */
    size_t args;
} good[] = {
    {"", NULL, NULL, NULL, 0},
    {"serve", "serve", NULL, NULL, 0},
    {"serve --port 80", "serve", "port", "80", 0},
    {"serve --port=80", "serve", "port", "80", 0},
    {"serve --port=", "serve", "port", "", 0},
    {"serve -p 80", "serve", "port", "80", 0},
    {"serve --port 1 --port 2", "serve", "port", "2", 0},
    {"serve --port -5", "serve", "port", "-5", 0},
    {"serve --port=--x", "serve", "port", "--x", 0},
    {"--config f serve", "serve", "config", "f", 0},
    {"serve --config f", "serve", "config", "f", 0},
    {"config check", "config check", NULL, NULL, 0},
    {"config --log debug check", "config check", "log", "debug", 0},
    {"config check f", "config check", NULL, NULL, 1},
    {"config check -- --f", "config check", NULL, NULL, 1},
    {"help", "help", NULL, NULL, 0},
    {"help config check", "help", NULL, NULL, 2},
    {"--help", NULL, "help", "", 0},
    {"completion --help", "completion", "help", "", 0},
    {"completion zsh", "completion", NULL, NULL, 1},
    {"serve --test-echo", "serve", "test-echo", "", 0},
    {"config", NULL, NULL, NULL, 0},
    {"doctor --json", "doctor", "json", "", 0},
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(good); i++) {
        struct mo_err e = {0};
        struct mo_cli c;
        char copy[256];

        check_row(good[i].line,
                  parse(&c, good[i].line, copy, sizeof(copy), &e) == 0);
        check_row(good[i].line, c.nargs == good[i].args);
        if (good[i].cmd)
            check_row(good[i].line,
                      c.cmd && strcmp(c.cmd->name, good[i].cmd) == 0);
        else
            check_row(good[i].line, !c.cmd);
        if (good[i].opt)
            check_row(good[i].line,
                      strcmp(mo_cli_get(&c, good[i].opt), good[i].value) == 0);
    }
}

static const struct {
    const char *line, *says;
} bad[] = {
    {"sevre", "unknown command 'sevre'; did you mean 'serve'?"},
    {"xyzzy", "unknown command 'xyzzy'"},
    {"config chek", "unknown command 'config chek'; did you mean 'config "
                    "check'?"},
    {"serve --prot 1", "unknown option '--prot'; did you mean '--port'?"},
    {"serve --prot=1", "did you mean '--port'?"},
    {"serve --qqqqq", "unknown option '--qqqqq'"},
    {"serve -q", "unknown option '-q'"},
    {"serve -pq", "unknown option '-pq'"},
    {"serve --port", "'--port' needs a value: --port N"},
    {"serve --port --json", "'--port' needs a value"},
    {"doctor --json=1", "'--json' takes no value"},
    {"--port 1 serve", "belongs after its command: serve --port"},
    {"serve here", "'serve' has no use for 'here'"},
    {"completion", "'completion' needs bash|zsh|fish"},
    {"version x", "has no use for 'x'"},
    {"serve --", NULL},
};

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(bad); i++) {
        struct mo_err e = {0};
        struct mo_cli c;
        char copy[256];
        int rc = parse(&c, bad[i].line, copy, sizeof(copy), &e);

        if (!bad[i].says) {
            check_row(bad[i].line, rc == 0);
            continue;
        }
        check_row(bad[i].line, rc == MO_EINVAL);
        if (!strstr(e.msg, bad[i].says))
            fail_msg("row '%s': says '%s'", bad[i].line, e.msg);
    }
}

static void test_hidden_are_not_guessed(void **state)
{
    struct mo_err e = {0};
    struct mo_cli c;
    char copy[64];

    (void)state;
    assert_int_equal(parse(&c, "completio", copy, sizeof(copy), &e), MO_EINVAL);
    assert_null(strstr(e.msg, "did you mean"));
    mo_err_clear(&e);
    assert_int_equal(parse(&c, "serve --test-ech", copy, sizeof(copy), &e),
                     MO_EINVAL);
    assert_null(strstr(e.msg, "did you mean"));
}

static void test_too_many_options(void **state)
{
    struct mo_err e = {0};
    struct mo_cli c;
    char copy[512], line[512] = "serve";

    (void)state;
    for (int i = 0; i <= MO_CLI_OPTS_MAX; i++)
        memcpy(line + strlen(line), " --help", 8);
    assert_int_equal(parse(&c, line, copy, sizeof(copy), &e), MO_EINVAL);
    assert_non_null(strstr(e.msg, "more than 32 options"));
}

/* Every option that stands for a key names one that exists and is plain. */
static void check_keys(const struct mo_opt *opts, size_t n)
{
    static struct mo_config cfg;

    for (size_t i = 0; i < n; i++) {
        const struct mo_key *k;
        void *field;

        check_row(opts[i].name, opts[i].doc && opts[i].doc[0]);
        check_row(opts[i].name, opts[i].doc[strlen(opts[i].doc) - 1] != '.');
        if (!opts[i].key)
            continue;
        k = mo_keys_path(&mo_config_keys, opts[i].key, &cfg, &field);
        check_row(opts[i].name, k && k->type <= MO_KEY_WORD);
        check_row(opts[i].name, opts[i].arg && !(k->flags & MO_KEY_SECRET));
    }
}

static void test_table(void **state)
{
    (void)state;
    check_keys(mo_commands.globals, mo_commands.nglobals);
    for (size_t i = 0; i < mo_commands.ncmds; i++) {
        const struct mo_cmd *cmd = mo_commands.cmds[i];
        struct mo_err e = {0};
        struct mo_cli c;
        char copy[256];

        check_row(cmd->name, cmd->run && cmd->summary && cmd->example_says);
        check_row(cmd->name,
                  mo_cli_find(&mo_commands, mo_span_cstr(cmd->name)) == cmd);
        check_keys(cmd->opts, cmd->nopts);
        /* The example must parse (up to a shell's redirection). */
        (void)snprintf(copy, sizeof(copy), "%.*s",
                       (int)strcspn(cmd->example, ">"), cmd->example);
        if (strchr(cmd->example, '>'))
            copy[strlen(copy) - 1] = '\0';
        {
            char line[256], *argv[WORDS_MAX];
            int argc;

            memcpy(line, copy, sizeof(line));
            argc = split(line, argv);
            check_row(cmd->name,
                      mo_cli_parse(&c, &mo_commands, argc, argv, &e) == 0);
            check_row(cmd->name, c.cmd == cmd);
        }
    }
}

/* --- texts --------------------------------------------------------------- */

static void test_help_names_everything(void **state)
{
    struct mo_buf b;

    (void)state;
    for (size_t i = 0; i < mo_commands.ncmds; i++) {
        const struct mo_cmd *cmd = mo_commands.cmds[i];
        const char *text;

        mo_buf_init(&b, 1 << 16);
        mo_help_command(&mo_commands, cmd, &b);
        text = mo_buf_cstr(&b);
        check_row(cmd->name, strstr(text, cmd->example));
        for (size_t j = 0; j < cmd->nopts; j++) {
            char flag[64];

            (void)snprintf(flag, sizeof(flag), "--%s", cmd->opts[j].name);
            check_row(flag, !strstr(text, flag) ==
                                !!(cmd->opts[j].flags & MO_CLI_HIDDEN));
        }
        mo_buf_fini(&b);
    }
}

static void test_help_fits_a_terminal(void **state)
{
    struct mo_buf b;
    struct mo_span rest;

    (void)state;
    mo_buf_init(&b, 1 << 18);
    mo_help_overview(&mo_commands, NULL, &b);
    mo_help_overview(&mo_commands, "config", &b);
    for (size_t i = 0; i < mo_commands.ncmds; i++) {
        if (!(mo_commands.cmds[i]->flags & MO_CLI_HIDDEN))
            mo_help_command(&mo_commands, mo_commands.cmds[i], &b);
    }
    rest = mo_buf_view(&b);
    while (rest.p) {
        struct mo_span line = mo_span_cut(&rest, '\n');

        if (line.n > 80)
            fail_msg("too long: %.*s", (int)line.n, line.p);
        assert_false(line.n && line.p[line.n - 1] == ' ');
    }
    mo_buf_fini(&b);
}

static void test_man_and_completions(void **state)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1 << 18);
    mo_man_program(&mo_commands, &b);
    assert_non_null(strstr(mo_buf_cstr(&b), "\\-config\\-check (1)"));
    mo_buf_reset(&b);
    mo_man_command(&mo_commands, mo_cli_find(&mo_commands, MO_SPAN("serve")),
                   &b);
    assert_non_null(strstr(mo_buf_cstr(&b), "\\fB\\-\\-tls\\-cert\\fR"));
    assert_null(strstr(mo_buf_cstr(&b), "test\\-echo"));
    for (size_t i = 0; i < MO_COUNT(shells); i++) {
        mo_buf_reset(&b);
        check_row(shells[i],
                  mo_help_completion(&mo_commands, shells[i], &b) == 0);
        check_row(shells[i], strstr(mo_buf_cstr(&b), "tls-cert"));
        check_row(shells[i], !strstr(mo_buf_cstr(&b), "test-echo"));
    }
    assert_int_equal(mo_help_completion(&mo_commands, "csh", &b), MO_ENOTFOUND);
    mo_buf_fini(&b);
}

static void write_all(void *ctx)
{
    struct mo_buf b;

    (void)ctx;
    mo_buf_init(&b, 1 << 18);
    mo_help_overview(&mo_commands, NULL, &b);
    mo_help_command(&mo_commands, mo_commands.cmds[0], &b);
    mo_man_program(&mo_commands, &b);
    mo_man_command(&mo_commands, mo_commands.cmds[0], &b);
    (void)mo_help_completion(&mo_commands, "fish", &b);
    assert_true(mo_buf_err(&b) == 0 || mo_buf_err(&b) == MO_ENOMEM);
    mo_buf_fini(&b);
}

static void test_torture(void **state)
{
    (void)state;
    torture(write_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_hidden_are_not_guessed),
        cmocka_unit_test(test_too_many_options),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_help_names_everything),
        cmocka_unit_test(test_help_fits_a_terminal),
        cmocka_unit_test(test_man_and_completions),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
