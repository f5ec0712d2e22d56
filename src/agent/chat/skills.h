/* skills.h - skills of a conversation's servers (SEP-2640), for the model and
 * for people.
 *
 * The model is offered one tool, read_skill, whose description names the skills
 * with their descriptions. It reads SKILL.md and the other files of a skill on
 * demand; nothing is read ahead. A file is given to the model only if it agrees
 * with the size and digest that its server has listed (mcp/skill_file.h).
 *
 * A skill is pinned like a tool (policy/tool_pins.h): its frontmatter and all
 * digests, under its URI. A skill that differs from its pin is held back until
 * a person accepts it. A skill without digests ("dynamic") can be neither
 * verified nor pinned and is not offered.
 *
 * Skill text is a server's text: the model gets it as the result of a call,
 * people as text.
 *
 * Limits: SKILLS_MAX skills, SKILLS_BYTES_MAX of entries; further ones are left
 * out. The description of read_skill names as many as fit into
 * SKILLS_TOLD_MAX bytes; read_skill without arguments lists all. */
#ifndef MO_AGENT_CHAT_SKILLS_H
#define MO_AGENT_CHAT_SKILLS_H

#include "agent/chat/chat_priv.h"

#define SKILLS_MAX       512
#define SKILLS_BYTES_MAX ((size_t)8 * 1024 * 1024)
#define SKILLS_TOLD_MAX  ((size_t)16 * 1024)
#define SKILL_TOOL       "read_skill"

struct call;

struct skill {
    struct mo_span name;  /* of the frontmatter */
    struct mo_json entry; /* as its server lists it */
    struct mo_tool pin;   /* its server, URI and digest, for pins and tools_off;
                             pin.name is the exposed URI */
    struct mo_buf before; /* the pinned entry; empty: it is as pinned */
    bool verifiable;      /* its files have digests */
    bool shared;          /* another server has a skill of that name */
};

struct skills {
    struct mo_arena arena;
    struct skill *v;
    size_t n;
};

/* Takes the skills of the gateway's catalogue and compares them with their
 * pins. Without memory there are none. */
void mo_skills_load(struct chat *c);
void mo_skills_free(struct chat *c);
/* Appends the tool read_skill to a list of definitions (a JSON array in b);
 * nothing if no skill may be used. */
int mo_skills_add_tool(const struct chat *c, struct mo_json list,
                       struct mo_buf *out);
/* True if the model may use the skill. */
bool mo_skill_is_offered(const struct chat *c, const struct skill *s);
/* Writes name, server and, if the name alone is not enough, how to name it. */
void mo_skill_put_name(struct mo_buf *b, const struct skill *s);
/* Appends that a skill is held back, for people. */
void mo_skill_put_trouble(struct mo_buf *b, const struct skill *s);
/* Appends a message for members for each skill that is held back. */
void mo_skills_put_troubles(struct chat *c);
/* Writes the member "skills". */
void mo_skills_put(struct mo_jw *w, const struct chat *c);
/* A person accepts a changed skill, by its exposed URI. False: there is no such
 * skill. */
bool mo_skills_accept(struct mo_member *m, struct mo_span uri,
                      struct mo_span digest, struct ack *ack);

/* --- read_skill.c -------------------------------------------------------- */

bool mo_read_skill_is_call(const struct call *k);
/* Runs the call; it ends now or later. */
void mo_read_skill_run(struct call *k);

#endif
