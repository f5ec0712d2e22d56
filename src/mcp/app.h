/* app.h - MCP Apps (extension io.modelcontextprotocol/ui, SEP-1865): the
 * metadata of tools, and the policy of an app's frame.
 *
 * A tool names the resource with its app (`_meta.ui.resourceUri`, a ui:// URI)
 * and who may call it (`_meta.ui.visibility`). The resource names the domains
 * that the app wants to reach (`_meta.ui.csp`). An app reaches those of them
 * that the operator grants, and nothing else.
 *
 * Pure functions; all metadata may be hostile. Limit: MO_APP_DOMAINS_MAX
 * domains in a list, the rest is refused. */
#ifndef MO_MCP_APP_H
#define MO_MCP_APP_H

#include "codec/json/json.h"

#define MO_APP_MIME        "text/html;profile=mcp-app"
#define MO_APP_DOMAINS_MAX 64
#define MO_APP_POLICY_MAX  ((size_t)12 * 1024) /* fits into a header */

/* The URI of the app of a tool's definition, a string that begins with ui://;
 * none: the tool has no app. */
struct mo_json mo_app_uri(struct mo_json tool);
/* True if the definition is for apps only: no model is offered the tool. meta:
 * its member _meta. */
bool mo_app_is_only(struct mo_json tool);
bool mo_app_meta_is_only(struct mo_json meta);
/* True if apps may call the tool. */
bool mo_app_may_call(struct mo_json tool);
/* True if a client with these capabilities shows apps. It keeps the tools that
 * are for apps only from its model; any other client gives all to its model. */
bool mo_app_can_show(struct mo_json capabilities);

/* Is it a domain that a granted one includes? granted: HOST or "*.HOST" (all
 * below HOST), either after a scheme such as "https://", else https and wss;
 * HOST may have a port. "*": all. */
bool mo_app_is_domain(const char *granted); /* has one of these forms? */
bool mo_app_is_granted(struct mo_span domain, const char *granted);

/* Appends the Content-Security-Policy of a frame that shows an app, without
 * frame-ancestors. csp: the member `csp` of its metadata, or none; v: the
 * domains that are granted. refused: gets the others, as elements of an array;
 * or NULL. */
void mo_app_policy(struct mo_json csp, const char *const *v, size_t n,
                   struct mo_buf *out, struct mo_jw *refused);

#endif
