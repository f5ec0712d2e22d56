/* keys_server.c - the keys of `server`: addresses, tokens and limits. */
#include "config/rows.h"

/* An address or a name; the port is a separate key. */
static const char *check_listen(const char *s)
{
    struct mo_span v = mo_span_cstr(s);
    bool v6 = mo_span_search(v, MO_SPAN("::")) >= 0 || v.p[0] == '[';

    if (v.n == 0 || mo_span_find(v, ' ') >= 0)
        return "must be an address such as 127.0.0.1, ::1 or 0.0.0.0";
    if (!v6 && mo_span_find(v, ':') >= 0 &&
        !mo_span_starts(v, MO_SPAN("unix:")))
        return "must be an address without a port (the port is server.port)";
    return NULL;
}

static const struct mo_key tls_rows[] = {
    {.name = "cert",
     STR(mo_config_tls, cert),
     .check = check_not_empty,
     .flags = MO_KEY_RESTART,
     .doc = "Certificate chain (PEM file)"},
    {.name = "key",
     STR(mo_config_tls, key),
     .check = check_not_empty,
     .flags = MO_KEY_RESTART,
     .doc = "Private key of the certificate (PEM file)"},
};
static const struct mo_keys tls_keys = KEYS(tls_rows, struct mo_config_tls);

static const struct mo_key limits_rows[] = {
    {.name = "connections",
     INT(mo_config_limits, connections, 1, 1000000),
     .def = "4096",
     .doc = "Open connections; further ones wait"},
    {.name = "headMs",
     INT(mo_config_limits, head_ms, 1, DAY_MS),
     .def = "10000",
     .doc = "Timeout of a whole request head"},
    {.name = "bodyMs",
     INT(mo_config_limits, body_ms, 1, DAY_MS),
     .def = "30000",
     .doc = "Longest pause within a request body"},
    {.name = "idleMs",
     INT(mo_config_limits, idle_ms, 1, DAY_MS),
     .def = "75000",
     .doc = "Longest pause between two requests"},
    {.name = "sendMs",
     INT(mo_config_limits, send_ms, 1, DAY_MS),
     .def = "30000",
     .doc = "Longest time in which a client accepts no byte"},
    {.name = "requests",
     INT(mo_config_limits, requests, 1, 1e9),
     .def = "100000",
     .doc = "Requests on one connection"},
    {.name = "bodyBytes",
     INT(mo_config_limits, body_bytes, 1024, 1e9),
     .def = "4194304",
     .doc = "Largest request body"},
    {.name = "queueBytes",
     INT(mo_config_limits, queue_bytes, 65536, 1e9),
     .def = "4194304",
     .doc = "Largest number of bytes queued for one client"},
};
static const struct mo_keys limits_keys =
    KEYS(limits_rows, struct mo_config_limits);

static const struct mo_key server_rows[] = {
    {.name = "listen",
     STR(mo_config_server, listen),
     .check = check_listen,
     .flags = MO_KEY_RESTART,
     .env = "MCP_ORCHESTRATOR_LISTEN",
     .def = "127.0.0.1",
     .doc = "Address to listen on; an address other than loopback needs a "
            "token"},
    {.name = "port",
     INT(mo_config_server, port, 0, 65535),
     .flags = MO_KEY_RESTART,
     .env = "PORT",
     .def = "3000",
     .doc = "Port to listen on; 0: any free port"},
    {.name = "token",
     STR(mo_config_server, token),
     .flags = MO_KEY_REF | MO_KEY_SECRET,
     .check = check_not_empty,
     .env = "MCP_ORCHESTRATOR_TOKEN",
     .doc = "Token that clients must send; if one is needed and not set, it "
            "is generated and printed once"},
    {.name = "tokens",
     MAP(mo_config_server, tokens),
     .flags = MO_KEY_REF | MO_KEY_SECRET,
     .check = check_not_empty,
     .doc = "Further tokens, by the name of the person. Each person sees only "
            "their own sessions; the holder of `server.token` sees everything"},
    {.name = "origins",
     LIST(mo_config_server, origins),
     .doc = "Other web origins that may connect, such as "
            "`https://chat.example.com`"},
    {.name = "manage",
     BOOL(mo_config_server, manage),
     .doc = "Whether MCP servers can be added, changed and removed over HTTP, "
            "which means running programs as this user; default: only if "
            "`listen` is a local address"},
    {.name = "tls",
     SECTION(mo_config_server, tls, mo_config_tls, tls_keys),
     .doc = "HTTPS"},
    {.name = "limits",
     SECTION(mo_config_server, limits, mo_config_limits, limits_keys),
     .doc = "Limits of one client and of all together"},
};
const struct mo_keys mo_config_server_keys =
    KEYS(server_rows, struct mo_config_server);
