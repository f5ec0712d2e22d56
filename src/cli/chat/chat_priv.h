/* chat_priv.h - shared by the files of `chat`.
 *
 *   show.c  prints the events of the conversation; questions and their answers
 *   form.c  questions of servers, field by field
 *   edit.c  arguments in the person's editor
 *   chat.c  input of the person; the command itself */
#ifndef MO_CLI_CHAT_CHAT_PRIV_H
#define MO_CLI_CHAT_CHAT_PRIV_H

#include "app/agent_setup.h"
#include "cli/runtime_wait.h"
#include "codec/json/json.h"
#include "loop/foreground.h"
#include "loop/stream.h"

#define CHAT_LINE_MAX MO_CHAT_TEXT_MAX

enum mode { SAY, CARD, REASON, EDIT, FORM, PAGE, SAMPLE, WAIT };

struct card {
    struct mo_list node;
    bool form; /* a question of a server, not a call */
    struct mo_json doc;
    char text[];
};

struct mo_chat_cmd_edit { /* an editor owns the terminal while fore is set */
    struct mo_foreground *fore;
    char path[4096];           /* file being edited; "": none */
    char call[MO_LLM_KEY_MAX]; /* id of the call */
    struct mo_buf text;        /* contents of the file if it was not JSON */
    struct mo_buf held;        /* output held back until the editor ends */
};

struct cli_chat {
    struct mo_cmd_runtime m;
    struct mo_chat_cmd_edit edit;
    struct mo_agent_setup *agent;
    struct mo_member *member;
    struct mo_stream *in;
    struct mo_buf line;   /* incomplete line */
    struct mo_buf ahead;  /* lines to handle after the turn */
    struct mo_later next; /* handles them */
    struct mo_list cards; /* the first is being asked */
    enum mode mode;
    struct mo_buf form; /* the answer so far */
    struct mo_json_iter fields;
    struct mo_json field_key, field; /* the current field */
    bool tty, json, yes, ours; /* ours: the session ends with this command */
    bool midline;              /* the last output had no newline */
    bool streamed;             /* text of this turn was already streamed */
    bool history;              /* print the next session:history */
    bool leaving, stopping;
    unsigned turns; /* running and queued */
    int code;       /* exit code */
    char session[MO_SESSION_ID_MAX + 1];
};

/* --- show.c --------------------------------------------------------- */

/* Prints a message; without a terminal on stderr, so that stdout is the
 * answer. */
void mo_chat_cmd_say(struct cli_chat *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void mo_chat_cmd_prompt(struct cli_chat *t);
void mo_chat_cmd_leave(struct cli_chat *t);
void mo_chat_cmd_turn_over(struct cli_chat *t, int code);
struct card *mo_chat_cmd_first(struct cli_chat *t); /* NULL: no question */
void mo_chat_cmd_drop(struct card *k);
/* A decision or an answer arrived; a bad one is asked again. */
void mo_chat_cmd_decided(void *ctx, const struct mo_ack *a);
void mo_chat_cmd_decide(struct cli_chat *t, bool approved,
                        enum mo_remember remember, struct mo_span reason,
                        struct mo_span args);
void mo_chat_cmd_show_card(struct cli_chat *t, bool all);
void mo_chat_cmd_next(struct cli_chat *t); /* next question, or a prompt */
void mo_chat_cmd_put(struct cli_chat *t, const struct mo_buf *b);
int mo_chat_cmd_join(struct cli_chat *t, const char *model, struct mo_err *e);
void mo_chat_cmd_release(struct cli_chat *t); /* prints held output */

/* --- edit.c --------------------------------------------------------- */

/* Opens an editor for the arguments of the first card; false: no editor, ask
 * for a line. */
bool mo_chat_cmd_edit(struct cli_chat *t);
/* Removes the file and stops the editor. */
void mo_chat_cmd_edit_end(struct cli_chat *t);

/* --- form.c --------------------------------------------------------- */

void mo_chat_cmd_form_begin(struct cli_chat *t);
void mo_chat_cmd_form_prompt(struct cli_chat *t, struct mo_buf *b);
void mo_chat_cmd_form_line(struct cli_chat *t, struct mo_span line);
void mo_chat_cmd_page_line(struct cli_chat *t, struct mo_span line);

#endif
