/* plan.h - what the installation of a server would do, before it is done.
 *
 * A plan is made from a word of the person: a name of the registry, an npm
 * package, an image or an address. The registry's server.json and npm's answers
 * fill it in. Pure: it asks nobody.
 *
 * Everything in it comes from others, so it is checked here (names, versions,
 * addresses, numbers of items) and escaped when it is shown. Warnings need a
 * yes of their own; notes are only shown.
 *
 * Ownership: texts live in the plan's arena. */
#ifndef MO_INSTALL_PLAN_H
#define MO_INSTALL_PLAN_H

#include "codec/json/json.h"

#define MO_INSTALL_BYTES_MAX ((size_t)2 * 1024 * 1024) /* texts of a plan */
#define MO_INSTALL_VARS_MAX  64
#define MO_INSTALL_ARGS_MAX  64
#define MO_INSTALL_SAYS_MAX  16
#define MO_INSTALL_HOSTS_MAX 32
#define MO_INSTALL_NAME_MAX  64 /* of a configured server */

enum mo_install_kind {
    MO_INSTALL_NPM,
    MO_INSTALL_PYPI,
    MO_INSTALL_MCPB,
    MO_INSTALL_OCI,
    MO_INSTALL_REMOTE,
};

/* The program that starts a server with files here. */
enum mo_install_runtime {
    MO_INSTALL_NODE,
    MO_INSTALL_PYTHON,
    MO_INSTALL_BINARY, /* mcpb: a program of the bundle */
};

/* The directory of an MCPB bundle, in arguments and values of its plan. */
#define MO_INSTALL_DIRNAME "${__dirname}"

/* An environment variable, or a header of a remote server. */
struct mo_install_var {
    const char *name, *text; /* text: its description, or NULL */
    const char *value;       /* NULL: none */
    const char *secret;      /* that the value names, SERVER.NAME, or NULL */
    bool is_secret, is_required;
};

struct mo_install_plan {
    struct mo_arena a;
    enum mo_install_kind kind;
    enum mo_install_runtime runtime;
    const char *name;     /* of the configured server */
    const char *registry; /* its name in the registry, or NULL */
    const char *package;  /* name; oci: image; others: address */
    const char *version;  /* exact once npm or pip has answered; else NULL */
    const char *integrity, *sha256;     /* of the package, or NULL */
    const char *publisher, *repository; /* as npm or the registry says */
    const char *mcp_name;               /* the registry name in the package */
    const char *bin;       /* npm: program, in the package; pypi: its name;
                             mcpb: a file of the bundle */
    const char *packages;  /* pypi: JSON, {NAME: {version, integrity}} */
    const char *transport; /* remote: "http" or "sse" */
    const char *description;
    const char *args[MO_INSTALL_ARGS_MAX];
    size_t nargs;
    size_t nfixed; /* the first of them, which the registry fixes */
    struct mo_install_var vars[MO_INSTALL_VARS_MAX];
    size_t nvars;
    bool is_unboxed;                         /* the person wants no box */
    const char *hosts[MO_INSTALL_HOSTS_MAX]; /* that its box may reach */
    size_t nhosts;
    bool has_reference;  /* the registry wrote a ${...}: refused */
    const char *missing; /* an argument that nobody has given, or NULL */
    bool has_scripts;    /* the package itself has install scripts */
    const char *warnings[MO_INSTALL_SAYS_MAX], *notes[MO_INSTALL_SAYS_MAX];
    size_t nwarnings, nnotes;
};

void mo_install_plan_fini(struct mo_install_plan *p);
#define mo_autoplan MO_CLEANUP(mo_install_plan_fini)

/* "npm:PACKAGE[@VERSION]", "pypi:PACKAGE[@VERSION]", "oci:IMAGE@sha256:...",
 * "mcpb:ADDRESS@sha256:...", "https://..." or
 * "NAMESPACE/NAME[@VERSION]" of the registry: then p->registry is set, and
 * mo_install_plan_server() says the rest. as: the name of the configured
 * server, or NULL: made from the word. MO_EINVAL. */
int mo_install_plan_word(struct mo_install_plan *p, struct mo_span word,
                         const char *as, struct mo_err *e);

/* Reads a server.json. kind: "npm", "pypi", "mcpb", "oci", "remote", or NULL:
 * the first of them that can be installed. MO_EINVAL: there is none. */
int mo_install_plan_server(struct mo_install_plan *p, struct mo_json server,
                           const char *kind, struct mo_err *e);

/* Reads the answer of mo_npm_view(). bin: which of several programs, or NULL.
 */
int mo_install_plan_npm(struct mo_install_plan *p, struct mo_json view,
                        const char *bin, struct mo_err *e);

/* Reads the answer of mo_pip_resolve(). bin: the same. */
int mo_install_plan_pypi(struct mo_install_plan *p, struct mo_json report,
                         const char *bin, struct mo_err *e);

/* Reads the manifest of an MCPB bundle. */
int mo_install_plan_mcpb(struct mo_install_plan *p, struct mo_json manifest,
                         struct mo_err *e);

/* True if it has files here, which run in a box unless is_unboxed. */
bool mo_install_plan_has_files(const struct mo_install_plan *p);

/* Adds an argument or sets a variable that the person gave. */
int mo_install_plan_arg(struct mo_install_plan *p, const char *arg,
                        struct mo_err *e);
int mo_install_plan_set(struct mo_install_plan *p, struct mo_span name,
                        struct mo_span value, struct mo_err *e);

/* Allows a host of the person: as an entry of network.allow. MO_EINVAL. */
int mo_install_plan_host(struct mo_install_plan *p, const char *host,
                         struct mo_err *e);
/* Proposes the hosts of addresses among its values, if the person gave none.
 * Names only: an address would be reached even if it is a private one. Once, at
 * the end. */
void mo_install_plan_propose(struct mo_install_plan *p);

/* Fails if a required value is missing; the error says how to give it. */
int mo_install_plan_check(const struct mo_install_plan *p, struct mo_err *e);

/* Adds the warnings about names that look like others. Once, at the end. */
void mo_install_plan_judge(struct mo_install_plan *p);
void mo_install_plan_warn(struct mo_install_plan *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void mo_install_plan_note(struct mo_install_plan *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Where it came from: "npm:@scope/name". */
void mo_install_plan_source(const struct mo_install_plan *p, struct mo_buf *b);

/* Appends the file that is started. dir: of the installation. */
void mo_install_plan_program(const struct mo_install_plan *p, const char *dir,
                             struct mo_buf *b);

/* The entry of the configuration. runtime: Node.js or Python; it and dir: only
 * with files. */
void mo_install_plan_entry(const struct mo_install_plan *p, const char *runtime,
                           const char *dir, struct mo_buf *b);

/* For the person and for programs. */
void mo_install_plan_text(const struct mo_install_plan *p, const char *runtime,
                          struct mo_buf *b);
void mo_install_plan_json(const struct mo_install_plan *p, struct mo_jw *w);
/* SHA-256 of that JSON: whoever agreed to a plan names it by this. */
void mo_install_plan_digest(const struct mo_install_plan *p, char out[65]);

#endif
