#include "web/openapi.h"

#include "web/openapi_rows.h"

#define DOC_MAX ((size_t)1024 * 1024)

static const struct mo_openapi_row rows[] = {
    {"/api/sessions", "get", "Sessions that are known, last used first", "",
     JSON_TYPE,
     "{'type':'object','required':['sessions'],'additionalProperties':false,"
     "'properties':{'sessions':{'type':'array','items':" REF("Session") "}}}"},
    {"/api/sessions/{id}", "get", "One session", ID, JSON_TYPE, REF("Session")},
    {"/api/sessions/{id}", "delete", "End a session and its box",
     ID "," Q("forget", "boolean", "its history too"), JSON_TYPE, REF("Ok")},
    {"/api/sessions/{id}", "patch", "Another name, {title}, while it is open",
     ID, JSON_TYPE, REF("Ok")},
    {"/api/sessions/{id}/calls", "get", "Who decided its calls, and when",
     ID "," Q("after", "integer", "only those after that one") "," Q(
         "limit", "integer", "at most so many"),
     JSON_TYPE,
     "{'type':'object','required':['more','calls'],"
     "'additionalProperties':false,'properties':{'more':{'type':'boolean'},"
     "'calls':{'type':'array','items':{'type':'object',"
     "'required':['callId','seq','at','state'],'additionalProperties':false,"
     "'properties':{'callId':{'type':'string'},'seq':{'type':'integer'},"
     "'at':{'type':'integer'},'state':{'enum':['pending','approved',"
     "'running','done','rejected','unknown']},'name':{'type':'string'},"
     "'server':{'type':'string'},'by':{'type':'string'},"
     "'who':{'type':'string'},'reason':{'type':'string'},"
     "'ms':{'type':'integer'}}}}}}"},
    {"/api/sessions/{id}/history", "get", "A conversation of a session",
     ID "," Q("conversation", "integer", "which; 0: the present one") "," Q(
         "after", "integer",
         "only entries after that one") "," Q("limit", "integer",
                                              "at most so many") "," Q("format",
                                                                       "string",
                                                                       "markdow"
                                                                       "n: for "
                                                                       "peopl"
                                                                       "e"),
     JSON_TYPE,
     "{'type':'object','required':['sessionId','more','messages'],"
     "'additionalProperties':false,'properties':{'sessionId':{'type':'string'},"
     "'conversation':{'type':'integer'},'more':{'type':'boolean'},"
     "'messages':{'type':'array','items':" REF("Message") "}}}"},
    {"/api/search", "get", "Words in all conversations",
     Q("q", "string", "the words") "," Q("limit", "integer", "at most so many"),
     JSON_TYPE, REF("Rows")},
    {"/api/audit", "get", "Who asked, who approved, what came back",
     Q("q", "string", "only rows with that text") "," Q(
         "before", "integer",
         "wall time in ms") "," Q("after", "integer",
                                  "wall time in ms") "," Q("limit", "integer",
                                                           "at most so many"),
     JSON_TYPE, REF("Rows")},
    {"/api/route", "get", "What the router would choose, and what it cannot",
     Q("q", "string", "plain words") "," Q(
         "limit", "integer", "at most so many") "," Q("threshold", "number",
                                                      "from 0 "
                                                      "to 1"),
     JSON_TYPE,
     "{'type':'object','required':['query','learnt','results','ruledOut'],"
     "'additionalProperties':false,'properties':{'query':{'type':'string'},"
     "'learnt':{'type':'integer'},"
     "'results':{'type':'array','items':" REF(
         "Hit") "},"
                "'ruledOut':{'type':'array','items':" REF("Hit") "}}}"},
    {"/api/route/teach", "post",
     "These words mean that tool, or not: {words, server, tool, right}", "",
     JSON_TYPE, REF("Ok")},
    {"/api/route/learnt", "delete", "Forget what the router has learnt", "",
     JSON_TYPE, REF("Ok")},
    {"/api/models/available", "get", "Models that can be picked", "", JSON_TYPE,
     "{'type':'object','required':['provider','model','models','providers'],"
     "'additionalProperties':false,'properties':{'provider':{'type':'string'},"
     "'model':{'type':['string','null']},"
     "'models':{'type':'array','items':{'type':'object',"
     "'required':['id','name','provider'],'additionalProperties':false,"
     "'properties':{'id':{'type':'string'},'name':{'type':'string'},"
     "'provider':{'type':'string'},'context':{'type':'integer'}}}},"
     "'providers':" REF("Providers") "}}"},
    {"/api/models/check", "get", "The same by id, as older clients ask", "",
     JSON_TYPE,
     "{'type':'object','required':['provider','models','providers'],"
     "'additionalProperties':false,'properties':{'provider':{'type':'string'},"
     "'models':{'type':'object','additionalProperties':{'type':'string',"
     "'pattern':'^(available|not_found|error: .*)$'}},"
     "'providers':" REF("Providers") "}}"},
    {"/api/servers", "get", "The configured MCP servers, and how they are", "",
     JSON_TYPE,
     "{'type':'object','required':['servers'],'additionalProperties':false,"
     "'properties':{'servers':{'type':'array','items':" REF("Server") "}}}"},
    {"/api/servers/{name}/test", "post", "Connect to a server now", NAME,
     JSON_TYPE,
     "{'type':'object','required':['ok','ms'],'additionalProperties':false,"
     "'properties':{'ok':{'type':'boolean'},'ms':{'type':'integer'},"
     "'error':{'type':'string'},'tools':{'type':'integer'}}}"},
    {"/api/servers/{name}/tools", "get", "What a server offers", NAME,
     JSON_TYPE,
     "{'type':'object','required':['tools'],'additionalProperties':false,"
     "'properties':{'tools':{'type':'array','items':" REF("Tool") "}}}"},
    {"/api/servers/{name}/tools/{tool}/call", "post",
     "Try a tool, as the approval rules allow", NAME "," TOOL, JSON_TYPE,
     REF("Tried")},
    {"/api/servers/{name}/tools/{tool}/accept", "post",
     "Use a tool whose definition has changed as it is now", NAME "," TOOL,
     JSON_TYPE, REF("Ok")},
    {"/api/stats", "get", "How all of it is doing now", "", JSON_TYPE,
     REF("Stats")},
    {"/api/providers", "get", "Which providers have a key; never the key", "",
     JSON_TYPE,
     "{'type':'object','required':['providers'],'additionalProperties':false,"
     "'properties':{'providers':{'type':'array','items':{'type':'object',"
     "'required':['name','variable','key'],'additionalProperties':false,"
     "'properties':{'name':{'type':'string'},'variable':{'type':'string'},"
     "'key':{'enum':['set','none','unreadable']},'from':{'type':'string'},"
     "'why':{'type':'string'}}}}}}"},
    {"/api/rules", "get", "What people always want, and what the operator says",
     "", JSON_TYPE, REF("Rules")},
    {"/api/rules", "post",
     "One more of the person's, {server, tool, action, args?}, by exact names",
     "", JSON_TYPE,
     "{'type':'object','required':['ok','id'],'additionalProperties':false,"
     "'properties':{'ok':{'const':true},'id':{'type':'string'}}}"},
    {"/api/rules/try", "post",
     "Which rule would decide {server, tool, args?, annotations?, draft?}", "",
     JSON_TYPE, REF("RuleTrial")},
    {"/api/rules/{id}", "delete", "Ask about it again",
     "{'name':'id','in':'path','required':true,'description':'of the rule',"
     "'schema':{'type':'string'}}",
     JSON_TYPE, REF("Ok")},
    {"/api/approvals", "get", "Calls of the gateway that wait for a person", "",
     JSON_TYPE,
     "{'type':'object','required':['approvals','changed'],"
     "'additionalProperties':false,'properties':{'approvals':{'type':'array',"
     "'items':" REF("Approval") "},'changed':{'type':'array','items':"
                                "{'type':'object','required':['server','tool','"
                                "digest','now']}}}}"},
    {"/api/approvals/{id}", "post",
     "Decide about one: {approved, digest, reason?, args?}",
     "{'name':'id','in':'path','required':true,'description':'of the call',"
     "'schema':{'type':'string'}}",
     JSON_TYPE, REF("Ok")},
    {"/api/approvals/tools", "post",
     "Use a tool that changed as it is now: {server, tool, digest}", "",
     JSON_TYPE, REF("Ok")},
    {"/api/audit/verify", "get", "Is the audit log what was written?", "",
     JSON_TYPE,
     "{'type':'object','required':['ok','rows','first','last','files'],"
     "'additionalProperties':false,'properties':{'ok':{'type':'boolean'},"
     "'rows':{'type':'integer'},'first':{'type':'integer'},"
     "'last':{'type':'integer'},'files':{'type':'integer'},"
     "'file':{'type':'string'},'line':{'type':'integer'},"
     "'why':{'type':'string'}}}"},
    {"/api/openapi.json", "get", "This document", "", JSON_TYPE,
     "{'type':'object','required':['openapi','info','paths']}"},
    {"/healthz", "get", "Is the process alive?", "", "text/plain", NULL},
    {"/readyz", "get", "Is everything there, and if not, why", "", JSON_TYPE,
     REF("Ready")},
    {"/health", "get", "The same, as older clients ask", "", JSON_TYPE,
     REF("Ready")},
    {"/metrics", "get", "Prometheus text", "", "text/plain", NULL},
};

static const struct mo_openapi_schema schemas[] = {
    {"Problem",
     "{'type':'object','required':['status','code','detail'],'properties':"
     "{'type':{'type':'string'},'title':{'type':'string'},"
     "'status':{'type':'integer'},'code':{'type':'string'},"
     "'detail':{'type':'string'}}}"},
    {"Ok", "{'type':'object','required':['ok'],'additionalProperties':false,"
           "'properties':{'ok':{'const':true}}}"},
    {"Session",
     "{'type':'object','required':['id','lastActive'],"
     "'additionalProperties':false,'properties':{'id':{'type':'string'},"
     "'lastActive':{'type':'integer'},'created':{'type':'integer'},"
     "'owner':{'type':'string'},"
     "'box':{'type':['string','null']},'driver':{'type':['string','null']},"
     "'asleep':{'type':'boolean'},"
     "'title':{'type':'string'},'model':{'type':'string'}}}"},
    {"Message",
     "{'type':'object','required':['seq','at','role'],'properties':"
     "{'seq':{'type':'integer'},'at':{'type':'integer'},"
     "'role':{'enum':['user','assistant','tool','note','summary']},"
     "'blocks':{'type':'array','items':{'type':'object',"
     "'required':['type']}},'results':{'type':'array','items':"
     "{'type':'object','required':['key','name','isError','content']}},"
     "'stop':{'type':'string'},'text':{'type':'string'}}}"},
    {"Rows",
     "{'type':'object','required':['more','rows'],'additionalProperties':false,"
     "'properties':{'more':{'type':'boolean'},'rows':{'type':'array','items':"
     "{'type':'object','required':['at','what'],'additionalProperties':false,"
     "'properties':{'sessionId':{'type':'string'},'seq':{'type':'integer'},"
     "'at':{'type':'integer'},'what':true}}}}}"},
    {"Approval",
     "{'type':'object','required':['id','server','tool','args','digest','who',"
     "'at','expiresAt','byClient'],'additionalProperties':false,'properties':{"
     "'id':{'type':'string'},'server':{'type':'string'},"
     "'tool':{'type':'string'},'definition':{'type':'object'},"
     "'args':{'type':'object'},'digest':{'type':'string'},"
     "'who':{'type':'string'},'client':{'type':'object'},"
     "'reason':{'type':'string'},'rule':{'type':'object',"
     "'required':['by'],'additionalProperties':false,'properties':{"
     "'by':{'enum':['operator','default']},'index':{'type':'integer'},"
     "'server':{'type':'string'},'tool':{'type':'string'},"
     "'remember':{'type':'boolean'}}},'words':{'type':'string'},"
     "'confidence':{'type':'number'},'at':{'type':'integer'},"
     "'expiresAt':{'type':'integer'},'byClient':{'type':'boolean'}}}"},
    {"Rule",
     "{'type':'object','required':['id','server','tool','action','at','who'],"
     "'additionalProperties':false,'properties':{'id':{'type':'string'},"
     "'server':{'type':'string'},'tool':{'type':'string'},"
     "'action':{'enum':['allow','deny']},'at':{'type':'integer'},"
     "'who':{'type':'string'},'args':{'type':'object',"
     "'additionalProperties':{'type':'string'}}}}"},
    {"Rules",
     "{'type':'object','required':['rules','operator','default'],"
     "'additionalProperties':false,'properties':{'rules':{'type':'array',"
     "'items':{'$ref':'#/components/schemas/Rule'}},"
     "'operator':{'type':'array',"
     "'items':{'$ref':'#/components/schemas/OperatorRule'}},"
     "'default':{'enum':['ask','allow','deny']}}}"},
    {"OperatorRule",
     "{'type':'object','required':['server','tool','action','remember'],"
     "'additionalProperties':false,'properties':{"
     "'server':{'type':'string'},'tool':{'type':'string'},"
     "'action':{'enum':['ask','allow','deny']},"
     "'args':{'type':'object','additionalProperties':{'type':'string'}},"
     "'annotations':{'type':'array','items':{'type':'string'}},"
     "'reason':{'type':'string'},'remember':{'type':'boolean'}}}"},
    {"RuleTrial", "{'type':'object','required':['action','by','rules'],"
                  "'additionalProperties':false,'properties':{"
                  "'action':{'enum':['ask','allow','deny']},"
                  "'by':{'enum':['operator','person','draft','default']},"
                  "'reason':{'type':'string'},'rules':{'type':'array','items':"
                  "{'type':'object','required':['by','index','fits','decides'],"
                  "'additionalProperties':false,'properties':{"
                  "'by':{'enum':['operator','person','draft']},"
                  "'index':{'type':'integer'},'fits':{'type':'boolean'},"
                  "'misses':{'enum':['server','tool','annotations','args']},"
                  "'path':{'type':'string'},'decides':{'type':'boolean'}}}}}}"},
    {"Stats",
     "{'type':'object','required':['at','since','sessions','boxes',"
     "'conversations','approvals','tokens','calls'],'properties':{"
     "'at':{'type':'integer'},'since':{'type':'integer'},"
     "'sessions':{'type':'object','required':['open','ready','warmBoxes',"
     "'started','adopted','revived','reaped','lost'],"
     "'additionalProperties':{'type':'integer'}},"
     "'boxes':{'type':'array','items':{'type':'object','required':['session',"
     "'box','driver','memoryBytes','memoryPeak','memoryLimit','cpuPercent',"
     "'cpuLimit','processes'],'additionalProperties':false,'properties':{"
     "'session':{'type':'string'},'box':{'type':'string'},"
     "'driver':{'type':'string'},'memoryBytes':{'type':'integer'},"
     "'memoryPeak':{'type':'integer'},'memoryLimit':{'type':'integer'},"
     "'cpuPercent':{'type':['number','null']},'cpuLimit':{'type':'number'},"
     "'processes':{'type':'integer'}}}},"
     "'conversations':{'type':'array','items':{'type':'object','required':["
     "'session','model','input','output','cacheRead','members','busy'],"
     "'additionalProperties':false,'properties':{'session':{'type':'string'},"
     "'model':{'type':'string'},'input':{'type':'integer'},"
     "'output':{'type':'integer'},'cacheRead':{'type':'integer'},"
     "'members':{'type':'integer'},'busy':{'type':'boolean'}}}},"
     "'approvals':{'type':'array','items':{'type':'object','required':["
     "'session','callId','server','tool','since','expiresAt'],"
     "'additionalProperties':false,'properties':{'session':{'type':'string'},"
     "'callId':{'type':'string'},'server':{'type':'string'},"
     "'tool':{'type':'string'},'title':{'type':'string'},"
     "'since':{'type':'integer'},'expiresAt':{'type':'integer'}}}},"
     "'tokens':{'type':'array','items':{'type':'object','required':["
     "'provider','model','input','output','cacheRead','replies'],"
     "'additionalProperties':false,'properties':{'provider':{'type':'string'},"
     "'model':{'type':'string'},'input':{'type':'integer'},"
     "'output':{'type':'integer'},'cacheRead':{'type':'integer'},"
     "'replies':{'type':'integer'}}}},"
     "'calls':{'type':'object','required':['total','failed','perMinute',"
     "'failedPerMinute','meanMs','longestMs','tokensPerMinute'],"
     "'additionalProperties':false,'properties':{'total':{'type':'integer'},"
     "'failed':{'type':'integer'},"
     "'perMinute':{'$ref':'#/components/schemas/Minutes'},"
     "'failedPerMinute':{'$ref':'#/components/schemas/Minutes'},"
     "'meanMs':{'$ref':'#/components/schemas/Minutes'},"
     "'longestMs':{'$ref':'#/components/schemas/Minutes'},"
     "'tokensPerMinute':{'$ref':'#/components/schemas/Minutes'}}},"
     "'gateway':{'$ref':'#/components/schemas/GatewayStats'}}}"},
    {"GatewayStats",
     "{'type':'object','required':['calls','errors','p50Ms','p95Ms',"
     "'perMinute','errorsPerMinute','longestMs','servers','children','queue',"
     "'waiting','savedTokens'],'additionalProperties':false,'properties':{"
     "'calls':{'type':'integer'},'errors':{'type':'integer'},"
     "'p50Ms':{'type':'number'},'p95Ms':{'type':'number'},"
     "'perMinute':{'$ref':'#/components/schemas/Minutes'},"
     "'errorsPerMinute':{'$ref':'#/components/schemas/Minutes'},"
     "'longestMs':{'$ref':'#/components/schemas/Minutes'},"
     "'children':{'type':'integer'},'queue':{'type':'integer'},"
     "'waiting':{'type':'integer'},'savedTokens':{'type':'integer'},"
     "'servers':{'type':'array','items':{'type':'object','required':['name',"
     "'state','breaker','children','queue','calls','errors','p50Ms','p95Ms',"
     "'tools'],'additionalProperties':false,'properties':{"
     "'name':{'type':'string'},'state':{'enum':['cold','starting','ok',"
     "'failed','broken','sign_in']},'breaker':{'enum':['closed','open',"
     "'half-open']},'children':{'type':'integer'},'queue':{'type':'integer'},"
     "'calls':{'type':'integer'},'errors':{'type':'integer'},"
     "'p50Ms':{'type':'number'},'p95Ms':{'type':'number'},"
     "'tools':{'type':'array','items':{'type':'object','required':['name',"
     "'calls','errors','p50Ms','p95Ms'],'additionalProperties':false,"
     "'properties':{'name':{'type':'string'},'calls':{'type':'integer'},"
     "'errors':{'type':'integer'},'p50Ms':{'type':'number'},"
     "'p95Ms':{'type':'number'}}}}}}}}}"},
    {"Minutes", "{'type':'array','maxItems':60,'items':{'type':'integer'}}"},
    {"Hit",
     "{'type':'object','required':['server','confidence'],"
     "'additionalProperties':false,'properties':{'server':{'type':'string'},"
     "'tool':{'type':'string'},'own':{'type':'string'},"
     "'name':{'type':'string'},"
     "'confidence':{'type':'number'},'score':{'type':'number'},"
     "'words':{'type':'number'},'meaning':{'type':'number'},"
     "'shared':{'type':'array','items':{'type':'object',"
     "'required':['word','in'],'additionalProperties':false,'properties':{"
     "'word':{'type':'string'},'in':{'type':'array','items':{'enum':['tool',"
     "'description','arguments','server']}}}}},'learnt':{'type':'number'},"
     "'equivalent':{'type':'boolean'},'description':{'type':'string'},"
     "'reason':{'enum':['disabled','hidden','unlisted','circuit-open',"
     "'sign-in','quarantined']},'why':{'type':'string'}}}"},
    {"Providers",
     "{'type':'array','items':{'type':'object','required':['name','ok',"
     "'models'],'additionalProperties':false,'properties':{'name':{'type':"
     "'string'},'ok':{'type':'boolean'},'models':{'type':'integer'},"
     "'error':{'type':'string'}}}}"},
    {"Server",
     "{'type':'object','required':['name','kind','target','state'],"
     "'additionalProperties':false,'properties':{'name':{'type':'string'},"
     "'kind':{'enum':['stdio','http','sse','image']},'target':{'type':"
     "'string'},'description':{'type':'string'},'state':{'enum':['off',"
     "'cold','starting','ok','failed']},'error':{'type':'string'},"
     "'retryMs':{'type':'integer'},'stderr':{'type':'string'},"
     "'version':{'type':'string'},'info':{'type':'object'},"
     "'calls':{'type':'integer'}}}"},
    {"Tool",
     "{'type':'object','required':['name','title','description',"
     "'inputSchema','annotations','digest'],'additionalProperties':false,"
     "'properties':{'name':{'type':'string'},'title':{'type':'string'},"
     "'description':{'type':'string'},'inputSchema':true,"
     "'annotations':true,'digest':{'type':'string'},'changedFrom':true}}"},
    {"Tried",
     "{'type':'object','required':['state'],'additionalProperties':false,"
     "'properties':{'state':{'enum':['done','ask','denied','changed',"
     "'unknown']},'digest':{'type':'string'},'reason':{'type':'string'},"
     "'args':{'type':'object'},'content':{'type':'array'},"
     "'isError':{'type':'boolean'},'durationMs':{'type':'integer'}}}"},
    {"Ready",
     "{'type':'object','required':['ready','checks'],'properties':{'ready':"
     "{'type':'boolean'},'checks':{'type':'array','items':{'type':'object',"
     "'required':['name','ok'],'properties':{'name':{'type':'string'},"
     "'ok':{'type':'boolean'},'reason':{'type':'string'}}}}}}"},
};

/* --- writing ------------------------------------------------------------- */

static void quoted(struct mo_buf *b, const char *text)
{
    for (; *text; text++)
        mo_buf_putc(b, *text == '\'' ? '"' : *text);
}

static void put_answers(struct mo_buf *b, const struct mo_openapi_row *r)
{
    quoted(b, "'responses':{'200':{'description':'as asked','content':{'");
    mo_buf_puts(b, r->type);
    quoted(b, "':{'schema':");
    quoted(b, r->schema ? r->schema : "{'type':'string'}");
    quoted(b, "}}},'default':{'description':'an error with a stable code',"
              "'content':{'application/problem+json':{'schema':" REF(
                  "Problem") "}}}}");
}

static void put_row(struct mo_buf *b, const struct mo_openapi_row *r)
{
    mo_buf_printf(b, "\"%s\":{\"summary\":\"%s\",\"parameters\":[", r->method,
                  r->summary);
    quoted(b, r->params);
    mo_buf_puts(b, "],");
    put_answers(b, r);
    mo_buf_putc(b, '}');
}

static const struct mo_openapi_part own = {rows, MO_COUNT(rows), schemas,
                                           MO_COUNT(schemas)};
static const struct mo_openapi_part *const parts[] = {&own, &mo_openapi_mcp};

/* Rows of one path stand together. */
static void put_paths(struct mo_buf *b)
{
    const char *last = NULL;

    for (size_t n = 0; n < MO_COUNT(parts); n++) {
        const struct mo_openapi_part *p = parts[n];

        for (size_t i = 0; i < p->nrows; i++) {
            const char *path = p->rows[i].path;
            bool again = last && strcmp(path, last) == 0;

            if (again)
                mo_buf_putc(b, ',');
            else
                mo_buf_printf(b, "%s\"%s\":{", last ? "}," : "", path);
            put_row(b, &p->rows[i]);
            last = path;
        }
    }
    mo_buf_puts(b, "}");
}

static void put_schemas(struct mo_buf *b)
{
    bool first = true;

    for (size_t n = 0; n < MO_COUNT(parts); n++) {
        const struct mo_openapi_part *p = parts[n];

        for (size_t i = 0; i < p->nschemas; i++) {
            mo_buf_printf(b, "%s\"%s\":", first ? "" : ",", p->schemas[i].name);
            quoted(b, p->schemas[i].schema);
            first = false;
        }
    }
}

static void put_routes(struct mo_buf *b, const struct mo_site *s)
{
    const struct mo_route *v = NULL;
    size_t n = s ? mo_site_routes(s, &v) : 0;

    for (size_t i = 0; i < n; i++)
        mo_buf_printf(b, "%s\"%s%s\"", i > 0 ? "," : "", v[i].path,
                      v[i].flags & MO_ROUTE_PREFIX ? "*" : "");
}

int mo_openapi_write(const struct mo_site *s, struct mo_buf *b)
{
    quoted(b, "{'openapi':'3.1.0','info':{'title':'MCP Orchestrator',"
              "'version':'");
    mo_buf_puts(b, MO_VERSION);
    quoted(b, "'},'security':[{},{'token':[]}],'paths':{");
    put_paths(b);
    quoted(b, "},'components':{'securitySchemes':{'token':{'type':'http',"
              "'scheme':'bearer'}},'schemas':{");
    put_schemas(b);
    quoted(b, "}},'x-routes':[");
    put_routes(b, s);
    mo_buf_puts(b, "]}");
    return mo_buf_err(b);
}

static void on_get(void *ctx, struct mo_req *rq)
{
    mo_autobuf struct mo_buf b = {.max = DOC_MAX};

    if (mo_openapi_write(ctx, &b) < 0)
        mo_req_problem(rq, 503, "no_memory", "out of memory");
    else
        mo_req_reply(rq, 200, JSON_TYPE, mo_buf_view(&b));
}

int mo_openapi_route(struct mo_site *s)
{
    const struct mo_route r = {MO_HTTP_GET, "/api/openapi.json",
                               MO_ROUTE_PERSON, on_get, s};

    return mo_site_route(s, &r);
}
