/* keys_server.c - the keys of `server`: where we listen, who may ask. */
#include "config/rows.h"

#define DAY_MS 86400000.0

/* An address or a name; the port has a key of its own. */
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

static const char *check_not_empty(const char *s)
{
    return *s ? NULL : "must not be empty";
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
     .doc = "Its private key (PEM file)"},
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
     .doc = "Time for a whole request head"},
    {.name = "bodyMs",
     INT(mo_config_limits, body_ms, 1, DAY_MS),
     .def = "30000",
     .doc = "Longest pause inside a request body"},
    {.name = "idleMs",
     INT(mo_config_limits, idle_ms, 1, DAY_MS),
     .def = "75000",
     .doc = "Longest pause between two requests"},
    {.name = "sendMs",
     INT(mo_config_limits, send_ms, 1, DAY_MS),
     .def = "30000",
     .doc = "Longest time a client may take no byte"},
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
     .doc = "Bytes waiting for one client"},
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
     .doc = "Address to listen on; anything but loopback needs a token"},
    {.name = "port",
     INT(mo_config_server, port, 0, 65535),
     .flags = MO_KEY_RESTART,
     .env = "PORT",
     .def = "3000",
     .doc = "Port to listen on; 0 takes a free one"},
    {.name = "token",
     STR(mo_config_server, token),
     .flags = MO_KEY_REF | MO_KEY_SECRET,
     .check = check_not_empty,
     .env = "MCP_ORCHESTRATOR_TOKEN",
     .doc = "What a client must show; made up and printed once where one is "
            "needed and not given"},
    {.name = "tokens",
     MAP(mo_config_server, tokens),
     .flags = MO_KEY_REF | MO_KEY_SECRET,
     .check = check_not_empty,
     .doc = "Further tokens by the name of the person each is for. What one of "
            "them begins is not there for the others; whoever shows "
            "`server.token` sees everything"},
    {.name = "origins",
     LIST(mo_config_server, origins),
     .doc = "Web origins besides our own that may connect, such as "
            "`https://chat.example.com`"},
    {.name = "manage",
     BOOL(mo_config_server, manage),
     .doc = "May MCP servers be added, changed and removed over HTTP, which "
            "is running programs as this user; without it: only while "
            "`listen` is this machine's own"},
    {.name = "tls",
     SECTION(mo_config_server, tls, mo_config_tls, tls_keys),
     .doc = "HTTPS"},
    {.name = "limits",
     SECTION(mo_config_server, limits, mo_config_limits, limits_keys),
     .doc = "What one client, and all together, may use"},
};
const struct mo_keys mo_config_server_keys =
    KEYS(server_rows, struct mo_config_server);
