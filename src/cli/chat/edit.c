/* edit.c - edits the arguments of a call in the person's editor.
 *
 * Writes the arguments, indented, into a file that only the owner can read and
 * starts $VISUAL or $EDITOR with it in the foreground. The contents of the file
 * afterwards are approved. The conversation continues meanwhile (else its
 * session would be lost): its output is held until the editor ends.
 *
 * The file is always removed. Text that is not JSON is kept, and the next edit
 * starts with it. */
#include "cli/chat/chat_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "policy/exact.h"

#define SUFFIX ".json"

static const char *find_editor(const struct cli_chat *t)
{
    const char *visual = mo_config_find_env(t->m.c->environ, "VISUAL");

    return visual ? visual : mo_config_find_env(t->m.c->environ, "EDITOR");
}

/* --- file ----------------------------------------------------------------- */

static int make_file(struct cli_chat *t, struct mo_span text, struct mo_err *e)
{
    const char *dir = mo_config_find_env(t->m.c->environ, "TMPDIR");
    mo_autofd int fd = -1;

    (void)snprintf(t->edit.path, sizeof(t->edit.path),
                   "%s/mcp-orchestrator-XXXXXX" SUFFIX, dir ? dir : "/tmp");
    fd = mkostemps(t->edit.path, sizeof(SUFFIX) - 1, O_CLOEXEC);
    if (fd < 0) {
        int rc = mo_fail_sys(e, "%s", t->edit.path);

        t->edit.path[0] = '\0';
        return rc;
    }
    return mo_file_write_all(fd, text, e);
}

static void remove_file(struct cli_chat *t)
{
    if (t->edit.path[0])
        (void)unlink(t->edit.path);
    t->edit.path[0] = '\0';
}

/* Writes the text of the last edit, or the arguments, one member per line. */
static int write_file(struct cli_chat *t, struct mo_json args, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_EXACT_MAX * 2};
    int rc;

    mo_buf_span(&b, mo_buf_view(&t->edit.text));
    if (b.len == 0 && mo_json_pretty(args, &b) == 0)
        mo_buf_putc(&b, '\n');
    rc = mo_buf_err(&b);
    return rc < 0 ? mo_fail(e, rc, "the arguments")
                  : make_file(t, mo_buf_view(&b), e);
}

/* --- editor --------------------------------------------------------------- */

static struct mo_json call_id(const struct cli_chat *t)
{
    struct card *k = mo_list_first(&t->cards, struct card, node);

    return k ? mo_json_get(k->doc, "callId") : (struct mo_json){NULL, 0};
}

static bool is_same_card(const struct cli_chat *t)
{
    return call_id(t).p &&
           mo_json_str_eq(call_id(t), mo_span_cstr(t->edit.call));
}

/* Unchanged arguments are not approved: that is what `y` is for. */
static bool is_unchanged(struct cli_chat *t, struct mo_json now)
{
    mo_autobuf struct mo_buf b = {.max = MO_EXACT_MAX};
    mo_autobuf struct mo_buf a = {.max = MO_EXACT_MAX};
    bool same = false;

    same = mo_exact_args(mo_json_get(mo_chat_cmd_first(t)->doc, "args"), &a,
                         NULL) == 0 &&
           mo_exact_args(now, &b, NULL) == 0 &&
           mo_span_eq(mo_buf_view(&a), mo_buf_view(&b));
    return same;
}

static void take_text(struct cli_chat *t)
{
    struct mo_json_doc doc;
    struct mo_err e;

    if (mo_json_parse(mo_buf_view(&t->edit.text), 0, &doc, &e) < 0) {
        mo_chat_cmd_say(t, "this is not JSON: %s; e edits it again", e.msg);
        return;
    }
    if (is_unchanged(t, doc.root))
        mo_chat_cmd_say(t, "(unchanged)");
    else
        mo_chat_cmd_decide(t, true, MO_REMEMBER_NO, mo_span(NULL, 0),
                           mo_json_text(doc.root));
    mo_buf_reset(&t->edit.text);
}

static void on_edited(void *ctx, struct mo_exit x)
{
    struct cli_chat *t = ctx;
    char how[MO_EXIT_TEXT_MAX];
    struct mo_err e;
    int rc;

    t->edit.fore = NULL;
    mo_buf_reset(&t->edit.text);
    rc = mo_file_read(t->edit.path, MO_EXACT_MAX, &t->edit.text, NULL, &e);
    remove_file(t);
    mo_chat_cmd_release(t);
    mo_exit_text(x, how);
    if (!is_same_card(t))
        mo_chat_cmd_say(t, "(the call was decided meanwhile)");
    else if (x.code != 0)
        mo_chat_cmd_say(t, "the editor ended with %s; nothing was changed",
                        how);
    else if (rc < 0)
        mo_chat_cmd_say(t, "%s", e.msg);
    else
        take_text(t);
    if (!is_same_card(t) || x.code != 0 || rc < 0)
        mo_buf_reset(&t->edit.text);
    if (t->in)
        mo_stream_resume(t->in);
    mo_chat_cmd_prompt(t);
}

static int start_editor(struct cli_chat *t, struct mo_err *e)
{
    char script[4096];
    const char *const argv[] = {"sh", "-c", script, "sh", t->edit.path, NULL};
    const struct mo_foreground_opts o = {
        .file = "/bin/sh",
        .argv = argv,
        .env = (const char *const *)t->m.c->environ,
        .on_exit = on_edited,
        .ctx = t,
    };
    int n = snprintf(script, sizeof(script), "%s \"$@\"", find_editor(t));

    if (n < 0 || (size_t)n >= sizeof(script))
        return mo_fail(e, MO_ETOOBIG, "the name of the editor is too long");
    return mo_foreground_start(t->m.loop, &o, &t->edit.fore, e);
}

bool mo_chat_cmd_edit(struct cli_chat *t)
{
    struct mo_json args = mo_json_get(mo_chat_cmd_first(t)->doc, "args");
    struct mo_buf id;
    struct mo_err e;

    if (find_editor(t) == NULL)
        return false;
    mo_buf_init(&id, sizeof(t->edit.call) - 1);
    (void)mo_json_str_buf(call_id(t), &id);
    if (strcmp(t->edit.call, mo_buf_cstr(&id)) != 0)
        mo_buf_reset(&t->edit.text); /* left from another call */
    (void)snprintf(t->edit.call, sizeof(t->edit.call), "%s", mo_buf_cstr(&id));
    mo_buf_fini(&id);
    if (write_file(t, args, &e) < 0 || start_editor(t, &e) < 0) {
        remove_file(t);
        mo_chat_cmd_say(t, "%s", e.msg);
        return false;
    }
    mo_stream_pause(t->in);
    return true;
}

void mo_chat_cmd_edit_end(struct cli_chat *t)
{
    if (t->edit.fore)
        mo_foreground_free(mo_take_ptr(&t->edit.fore));
    remove_file(t);
    mo_chat_cmd_release(t);
    mo_buf_fini(&t->edit.text);
    mo_buf_fini(&t->edit.held);
}
