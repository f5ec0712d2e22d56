/* audit_config.h - rows about files of the configuration (config/trust.h):
 * confirmed by a person, not used because they are not trusted, or read again
 * by a running server. */
#ifndef MO_AUDIT_AUDIT_CONFIG_H
#define MO_AUDIT_AUDIT_CONFIG_H

#include "audit/audit.h"
#include "config/reload.h"

/* A person confirms this content of the file, by a command. Blocks. */
int mo_audit_confirmed_now(const struct mo_config *cfg, const char *path,
                           struct mo_span text, struct mo_err *e);
/* Files that a command found and did not use. Blocks. */
int mo_audit_untrusted_now(const struct mo_config *cfg,
                           const struct mo_config_report *rep,
                           struct mo_err *e);
/* The file was read again, because of a `signal` or because the file changed
 * (by: "file"). Files that are not trusted have a row each, one that is not
 * valid has one. A reload that changed nothing has none. */
void mo_audit_reloaded(struct mo_audit *a, const char *path, const char *by,
                       const struct mo_config_report *rep,
                       const struct mo_reload_news *news);

#endif
