/* openapi_mcp.c - what api_mcp.h answers, for openapi.json. */
#include "web/openapi_rows.h"

#include "base/mem.h"

#define OBJ(required, properties)                                              \
    "{'type':'object','required':[" required                                   \
    "],'additionalProperties':false,'properties':{" properties "}}"
#define STRING  "{'type':'string'}"
#define NUMBER  "{'type':'integer'}"
#define BOOLEAN "{'type':'boolean'}"
#define OBJECT  "{'type':'object'}"

#define CHANGES                                                                \
    Q("test", "boolean", "connect first, and save only what works")            \
    "," Q("dryRun", "boolean", "save nothing") "," Q(                          \
        "replace", "boolean", "write over one of that name")

#define STATE                                                                  \
    "'state':{'enum':['broken','ok','sign_in','failed','starting','cold',"     \
    "'disabled']},'error':" STRING ",'retryMs':" NUMBER ",'stderr':" STRING    \
    ",'gateway':" REF("GatewayState")

#define VIEW                                                                   \
    "'name':" STRING ",'transport':" STRING ",'where':" STRING                 \
    ",'enabled':" BOOLEAN ",'kind':" STRING ",'target':" STRING                \
    ",'description':" STRING ",'tools':" NUMBER ",'version':" STRING           \
    ",'info':" OBJECT ",'calls':" NUMBER "," STATE

#define VIEW_HAS "'name','transport','where','enabled','kind','target','state'"

static const struct mo_openapi_row rows[] = {
    {"/api/mcp", "get",
     "All MCP servers of the configuration, and how they are", "", JSON_TYPE,
     OBJ("'manage','file','servers'",
         "'manage':" BOOLEAN ",'file':" STRING
         ",'servers':{'type':'array','items':" REF("Managed") "}")},
    {"/api/mcp", "post",
     "Add a server: {name, command, args, env | url, headers | image, ...}",
     CHANGES, JSON_TYPE, REF("Change")},
    {"/api/mcp/add", "post", "The same, as older clients ask: {name, config}",
     CHANGES, JSON_TYPE, REF("Change")},
    {"/api/mcp/health", "get", "How the servers are", "", JSON_TYPE,
     OBJ("'summary','servers'",
         "'summary':" OBJ(
             "'total','healthy','unhealthy','reconnecting',"
             "'disconnected'",
             "'total':" NUMBER ",'healthy':" NUMBER ",'unhealthy':" NUMBER
             ",'reconnecting':" NUMBER
             ",'disconnected':" NUMBER) ",'servers':{'type':"
                                        "'array','items':" OBJ(
                                            "'name','enabled','state'",
                                            "'name':" STRING
                                            ",'enabled':" BOOLEAN
                                            "," STATE) "}")},
    {"/api/mcp/import", "post",
     "Take over the servers of another client's file, which is the body",
     Q("dryRun", "boolean", "only the plan") "," Q(
         "replace", "boolean",
         "also what differs from ours") "," Q("secrets", "boolean",
                                              "false: keys stay in the file"),
     JSON_TYPE, REF("Plan")},
    {"/api/mcp/snippets", "get", "What other clients need to connect to us", "",
     JSON_TYPE,
     OBJ("'command','args','url','needsToken'",
         "'command':" STRING ",'args':{'type':'array','items':" STRING
         "},'url':" STRING ",'needsToken':" BOOLEAN)},
    {"/api/mcp/{name}", "get", "One server, with its entry of the file", NAME,
     JSON_TYPE, OBJ(VIEW_HAS, VIEW ",'config':" OBJECT)},
    {"/api/mcp/{name}", "patch",
     "Change its entry: members are set, null takes out", NAME "," CHANGES,
     JSON_TYPE, REF("Change")},
    {"/api/mcp/{name}", "delete", "Take it out of the configuration", NAME,
     JSON_TYPE, REF("Change")},
    {"/api/mcp/{name}/test", "post", "Connect to it now, beside what runs",
     NAME, JSON_TYPE, REF("Test")},
    {"/api/mcp/{name}/tools", "get", "What a server offers", NAME, JSON_TYPE,
     OBJ("'tools'", "'tools':{'type':'array','items':" REF("Tool") "}")},
    {"/api/mcp/{name}/tools/{tool}/call", "post",
     "Try a tool, as the approval rules allow", NAME "," TOOL, JSON_TYPE,
     REF("Tried")},
    {"/api/mcp/{name}/tools/{tool}/accept", "post",
     "Use a tool whose definition has changed as it is now", NAME "," TOOL,
     JSON_TYPE, REF("Ok")},
};

static const struct mo_openapi_schema schemas[] = {
    {"Managed", OBJ(VIEW_HAS, VIEW)},
    {"GatewayState",
     OBJ("'state','breaker','children','calls','waiting','starts','fails',"
         "'retryMs'",
         "'state':" STRING
         ",'breaker':{'enum':['closed','open','half-open']},'children':" NUMBER
         ",'calls':" NUMBER ",'waiting':" NUMBER ",'starts':" NUMBER
         ",'fails':" NUMBER ",'retryMs':" NUMBER ",'instances':" NUMBER
         ",'perSession':" BOOLEAN ",'error':" STRING)},
    {"Test", OBJ("'ok','ms'", "'ok':" BOOLEAN ",'ms':" NUMBER ",'tools':" NUMBER
                              ",'protocolVersion':" STRING
                              ",'serverInfo':" OBJECT ",'error':" STRING
                              ",'signIn':{'const':'needed'},'stderr':" STRING)},
    {"Change",
     OBJ("'name','saved','secrets'",
         "'name':" STRING ",'saved':" BOOLEAN ",'message':" STRING
         ",'secrets':{'type':'array','items':" STRING "},'test':" REF("Test"))},
    {"Plan",
     OBJ("'format','written','servers'",
         "'format':" STRING ",'written':" BOOLEAN
         ",'servers':{'type':'array','items':" OBJ(
             "'name','was','action','why','leftOut','keyInArgs','secrets'",
             "'name':" STRING ",'was':" STRING
             ",'action':{'enum':['add','same','differs','replace','cannot']},"
             "'why':{'type':['string','null']},'leftOut':" STRING
             ",'keyInArgs':" BOOLEAN ",'secrets':{'type':'array','items':" OBJ(
                 "'name','known'",
                 "'name':" STRING ",'known':" BOOLEAN) "}") "}")},
};

const struct mo_openapi_part mo_openapi_mcp = {rows, MO_COUNT(rows), schemas,
                                               MO_COUNT(schemas)};
