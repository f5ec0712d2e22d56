/* choices.h - the enumerations that a configuration key can choose from and
 * that other rooms act on. They are here so that the configuration need not
 * include the rooms above it. */
#ifndef MO_CONFIG_CHOICES_H
#define MO_CONFIG_CHOICES_H

/* Decision about a tool call. */
enum mo_action { MO_ACTION_ASK, MO_ACTION_ALLOW, MO_ACTION_DENY };

/* The person or program that may answer a call a rule asks about. */
enum mo_approver {
    MO_APPROVER_AUTO,     /* conversations: their owner; gateway: operator */
    MO_APPROVER_OPERATOR, /* by the operator's token or a local command */
    MO_APPROVER_OWNER,    /* and the person whose session or token it is */
    MO_APPROVER_CLIENT,   /* and the client of the gateway that made the call */
};

/* Handshake with an MCP server. */
enum mo_server_era {
    MO_SERVER_ERA_AUTO, /* server/discover, then initialize if it must be */
    MO_SERVER_ERA_MODERN,
    MO_SERVER_ERA_LEGACY,
};

/* Providers of language models. */
enum mo_llm_kind {
    MO_LLM_DEMO,
    MO_LLM_CLAUDE,
    MO_LLM_GEMINI,
    MO_LLM_OPENAI,     /* Responses where its model needs it, else Chat */
    MO_LLM_COMPATIBLE, /* Chat Completions of another server */
};
#define MO_LLM_AUTO (-1) /* beside enum mo_llm_kind */

/* Which models are sent images. */
enum mo_images { MO_IMAGES_AUTO, MO_IMAGES_ALWAYS, MO_IMAGES_NEVER };

/* How a conversation gets its title. */
enum mo_titles { MO_TITLES_RULE, MO_TITLES_MODEL };

/* When the gateway puts a server's name before its tools' names. */
enum mo_gw_prefix {
    MO_GW_PREFIX_COLLISION, /* only names that two servers have */
    MO_GW_PREFIX_ALWAYS,
    MO_GW_PREFIX_NEVER, /* the first server wins; others are hidden */
};

/* Which tools a client of the gateway, or a model, is offered. */
enum mo_gw_expose {
    MO_GW_ALL,    /* every tool by its name */
    MO_GW_SEARCH, /* four tools that find and run the others
                     (gateway/router/meta_tools.h) */
    MO_GW_AUTO,   /* all, or search if there are too many */
    MO_GW_CODE,   /* search, and scripts that call tools */
};
#define MO_GW_EXPOSE_SAME (-1) /* of a view: as the gateway */

/* Rights of a person; each role contains the ones before it (people/role.h). */
enum mo_role {
    MO_ROLE_NONE,
    MO_ROLE_VIEWER,   /* reads what others share */
    MO_ROLE_USER,     /* has sessions, calls tools */
    MO_ROLE_APPROVER, /* decides about calls of others */
    MO_ROLE_OPERATOR, /* everything */
    MO_ROLES
};

/* Modes of approval that people may set for their conversations. */
enum mo_modes {
    MO_MODES_NONE = 0,
    MO_MODES_READS = 1,
    MO_MODES_BOX = 2,
    MO_MODES_ALL = 3,
};

/* Which waiting calls a webhook is told about. */
enum mo_webhook_calls { MO_WEBHOOK_TEAM, MO_WEBHOOK_ALL };

/* Which of the gateway's calls a person must approve. */
enum mo_gw_approvals { MO_GW_BY_RULES, MO_GW_ASK_REST, MO_GW_NO_RULES };

#endif
