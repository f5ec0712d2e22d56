/* keys_oauth.c - the keys of mcpServers.NAME.oauth.
 *
 * All may be left out: a server that wants a sign-in says where, and most
 * issuers let us register by ourselves. */
#include "config/rows.h"
#include "mcp/oauth/oauth_back.h"

static const char *check_not_empty(const char *s)
{
    return *s ? NULL : "must not be empty";
}

static const char *check_https(const char *s)
{
    return mo_span_starts(mo_span_cstr(s), MO_SPAN("https://"))
               ? NULL
               : "must start with https://";
}

/* RFC 6749: visible ASCII but for quote and backslash, blanks between. */
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
     .doc = "`false`: never sign in there; a refusal is an error. A header "
            "`Authorization` in `headers` means the same"},
    {.name = "clientId",
     STR(mo_config_oauth, client_id),
     .check = check_not_empty,
     .flags = MO_KEY_REF,
     .doc = "Client registered by hand at the issuer; needed only where it "
            "registers nobody by itself"},
    {.name = "clientSecret",
     STR(mo_config_oauth, client_secret),
     .check = check_not_empty,
     .flags = MO_KEY_REF | MO_KEY_SECRET,
     .doc = "The secret of that client, if it has one; better a reference"},
    {.name = "clientMetadataUrl",
     STR(mo_config_oauth, client_url),
     .check = check_https,
     .doc = "Address of a client metadata document, which is the client's id "
            "at issuers that take one"},
    {.name = "scope",
     STR(mo_config_oauth, scope),
     .check = check_scope,
     .doc = "Scopes to ask for besides those the server names, with blanks "
            "between"},
    {.name = "redirectUri",
     STR(mo_config_oauth, redirect),
     .check = mo_back_check,
     .def = MO_BACK_URI,
     .doc = "Where the browser comes back to on this machine. Without a port "
            "the one of the last sign-in is taken, or a free one"},
    {.name = "signInSeconds",
     INT(mo_config_oauth, sign_in_seconds, 1, 86400),
     .def = "300",
     .doc = "How long a person has for signing in"},
};
const struct mo_keys mo_config_oauth_keys = KEYS(rows, struct mo_config_oauth);
