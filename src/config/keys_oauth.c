/* keys_oauth.c - the keys of mcpServers.NAME.oauth.
 *
 * All are optional: a server that needs a sign-in names its issuer, and most
 * issuers support automatic registration. */
#include "config/rows.h"
#include "mcp/oauth/oauth_back.h"

static const char *check_https(const char *s)
{
    return mo_span_starts(mo_span_cstr(s), MO_SPAN("https://"))
               ? NULL
               : "must start with https://";
}

/* RFC 6749: visible ASCII except quote and backslash, separated by blanks. */
static const char *check_scope(const char *s)
{
    for (const char *p = s; *p; p++) {
        if (*p < ' ' || *p > '~' || *p == '"' || *p == '\\')
            return "must be scopes with blanks between";
    }
    return check_not_empty(s);
}

static const struct mo_key rows[] = {
    {.name = "enabled",
     BOOL(mo_config_oauth, enabled),
     .def = "true",
     .doc = "`false`: never sign in; an HTTP 401 is then an error. A header "
            "`Authorization` in `headers` has the same effect"},
    {.name = "clientId",
     STR(mo_config_oauth, client_id),
     .check = check_not_empty,
     .flags = MO_KEY_REF,
     .doc = "Client registered by hand at the issuer; needed only if the "
            "issuer does not support automatic registration"},
    {.name = "clientSecret",
     STR(mo_config_oauth, client_secret),
     .check = check_not_empty,
     .flags = MO_KEY_REF | MO_KEY_SECRET,
     .doc = "Secret of that client, if it has one; prefer a reference"},
    {.name = "clientMetadataUrl",
     STR(mo_config_oauth, client_url),
     .check = check_https,
     .doc = "URL of a client metadata document, used as the client id at "
            "issuers that support it"},
    {.name = "scope",
     STR(mo_config_oauth, scope),
     .check = check_scope,
     .doc = "Scopes to request besides those that the server names, separated "
            "by blanks"},
    {.name = "redirectUri",
     STR(mo_config_oauth, redirect),
     .check = mo_back_check,
     .def = MO_BACK_URI,
     .doc = "Redirect address of the browser on this machine. Without a port, "
            "the port of the last sign-in is used, or a free one"},
    {.name = "signInSeconds",
     INT(mo_config_oauth, sign_in_seconds, 1, 86400),
     .def = "300",
     .doc = "Timeout of a sign-in by a person"},
};
const struct mo_keys mo_config_oauth_keys = KEYS(rows, struct mo_config_oauth);
