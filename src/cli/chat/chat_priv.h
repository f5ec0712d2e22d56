/* chat_priv.h - `chat`: what its files share.
 *
 *   show.c  events of the conversation as text; cards and their answers
 *   form.c  what servers ask the person, field by field
 *   edit.c  arguments in the person's own editor
 *   chat.c       what a person types; the command itself */
#ifndef MO_CLI_CHAT_CHAT_PRIV_H
#define MO_CLI_CHAT_CHAT_PRIV_H

#include "app/agent_setup.h"
#include "cli/runtime_wait.h"
#include "codec/json/json.h"
#include "loop/foreground.h"
#include "loop/stream.h"

#define CHAT_LINE_MAX MO_CHAT_TEXT_MAX

enum mode { SAY, CARD, REASON, EDIT, FORM, PAGE, WAIT };

struct card {
    struct mo_list node;
    bool form; /* a server's question, not a call */
    struct mo_json doc;
    char text[];
};

struct mo_chat_cmd_edit { /* an editor has the terminal while there is a fore */
    struct mo_foreground *fore;
    char path[4096];           /* its file; "": none */
    char call[MO_LLM_KEY_MAX]; /* whose arguments */
    struct mo_buf text;        /* what was in the file, if it is no JSON */
    struct mo_buf held;        /* what is to be shown afterwards */
};

struct cli_chat {
    struct mo_cmd_house m;
    struct mo_chat_cmd_edit edit;
    struct mo_agent_setup *converse;
    struct mo_member *member;
    struct mo_stream *in;
    struct mo_buf line;   /* not ended yet */
    struct mo_buf ahead;  /* lines for after the turn */
    struct mo_later next; /* takes them */
    struct mo_list cards; /* the first is the one that is asked about */
    enum mode mode;
    struct mo_buf form; /* the answer so far */
    struct mo_json_iter fields;
    struct mo_json field_key, field; /* the one that is asked for */
    bool tty, json, yes, ours;       /* ours: the session ends with us */
    bool midline;                    /* the last text had no line end */
    bool streamed; /* text of this turn was shown as it came */
    bool history;  /* the next session:history is printed */
    bool leaving, stopping;
    unsigned turns; /* under way and in line */
    int code;       /* to end with */
    char session[MO_SESSION_ID_MAX + 1];
};

/* --- show.c --------------------------------------------------------- */

/* A line of ours; for scripts on stderr, so that stdout is the answer. */
void mo_chat_cmd_say(struct cli_chat *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void mo_chat_cmd_prompt(struct cli_chat *t);
void mo_chat_cmd_leave(struct cli_chat *t);
void mo_chat_cmd_turn_over(struct cli_chat *t, int code);
struct card *mo_chat_cmd_first(struct cli_chat *t); /* NULL: nobody is asked */
void mo_chat_cmd_drop(struct card *k);
void mo_chat_cmd_decide(struct cli_chat *t, bool approved,
                        enum mo_remember remember, struct mo_span reason,
                        struct mo_span args);
void mo_chat_cmd_show_card(struct cli_chat *t, bool all);
void mo_chat_cmd_next(struct cli_chat *t); /* the next card, or a prompt */
void mo_chat_cmd_put(struct cli_chat *t, struct mo_buf *b); /* and b is empty */
int mo_chat_cmd_join(struct cli_chat *t, const char *model, struct mo_err *e);
void mo_chat_cmd_release(struct cli_chat *t); /* shows what was held back */

/* --- edit.c --------------------------------------------------------- */

/* The first card's arguments; false: there is no editor, ask for a line. */
bool mo_chat_cmd_edit(struct cli_chat *t);
void mo_chat_cmd_edit_end(
    struct cli_chat *t); /* the file goes, the editor too */

/* --- form.c --------------------------------------------------------- */

void mo_chat_cmd_form_begin(struct cli_chat *t);
void mo_chat_cmd_form_prompt(struct cli_chat *t, struct mo_buf *b);
void mo_chat_cmd_form_line(struct cli_chat *t, struct mo_span line);
void mo_chat_cmd_page_line(struct cli_chat *t, struct mo_span line);

#endif
