/* result_links.h - URIs of resources in the results of tools and prompts.
 *
 * A result may link to a resource of its server (resource_link) or contain one
 * (resource). If the gateway exposes that URI under another name, because
 * another server has it too, the result gets the same name, so that its reader
 * can ask for it. All other bytes are kept. */
#ifndef MO_GATEWAY_CALL_RESULT_LINKS_H
#define MO_GATEWAY_CALL_RESULT_LINKS_H

#include "gateway/catalog/catalog.h"

/* Writes the result of a call, or of a task that contains one. False: it needs
 * no change, or memory ran out; use it as it is. */
bool mo_result_links(const struct mo_catalog *cat, const char *server,
                     struct mo_json result, struct mo_buf *out);

#endif
