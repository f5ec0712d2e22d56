/* meta_tools_text.h - the definitions of the meta-tools. Private to
 * meta_tools.c. */
#ifndef MO_GATEWAY_ROUTER_META_TOOLS_TEXT_H
#define MO_GATEWAY_ROUTER_META_TOOLS_TEXT_H

#define OBJECT_OF "{\"type\":\"object\",\"properties\":{"
#define TEXT_THAT "{\"type\":\"string\",\"description\":"
#define READS_ONLY                                                             \
    "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}"

static const char meta_tools_json[] =
    "{\"tools\":["
    "{\"name\":\"find_tool\",\"title\":\"Find a tool\",\"description\":"
    "\"Find the tools that fit a request in plain words. Answers with servers, "
    "tools, how sure it is (0 to 1), descriptions and input schemas; run one "
    "with execute.\","
    "\"inputSchema\":" OBJECT_OF "\"query\":" TEXT_THAT
    "\"What is to be done, in plain words\"},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":50,"
    "\"default\":5},"
    "\"threshold\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1,"
    "\"description\":\"Leave out what is less sure\"}},"
    "\"required\":[\"query\"]},"
    "\"outputSchema\":" OBJECT_OF
    "\"results\":{\"type\":\"array\",\"items\":" OBJECT_OF
    "\"server\":{\"type\":\"string\"},\"tool\":{\"type\":\"string\"},"
    "\"confidence\":{\"type\":\"number\"},"
    "\"description\":{\"type\":\"string\"},"
    "\"inputSchema\":{\"type\":\"object\"},"
    "\"reason\":" TEXT_THAT "\"It cannot be used now: quarantined, "
    "circuit-open or sign-in\"},\"why\":{\"type\":\"string\"}},"
    "\"required\":[\"server\",\"tool\",\"confidence\"]}}},"
    "\"required\":[\"results\"]}," READS_ONLY "},"

    "{\"name\":\"execute\",\"title\":\"Run a tool\",\"description\":"
    "\"Run a tool of any server and return its result. Name it by server and "
    "tool (see find_tool), or say in request what is to be done: then it is "
    "run "
    "only if it is clear which one is meant, otherwise the candidates are "
    "listed and nothing is done. params are the tool's own arguments.\","
    "\"inputSchema\":" OBJECT_OF "\"request\":" TEXT_THAT
    "\"What is to be done, in plain words\"},"
    "\"server\":{\"type\":\"string\"},\"tool\":{\"type\":\"string\"},"
    "\"params\":{\"type\":\"object\",\"description\":"
    "\"Arguments of the tool, as its inputSchema says\"}}}},"

    "{\"name\":\"list_capabilities\",\"title\":\"What there is\","
    "\"description\":\"List the servers and their tools, a page at a time.\","
    "\"inputSchema\":" OBJECT_OF "\"category\":" TEXT_THAT
    "\"Only servers of this category or tag, or with this word in their "
    "keywords or description\"},"
    "\"server\":" TEXT_THAT "\"Only this server, with all its tools\"},"
    "\"cursor\":" TEXT_THAT "\"nextCursor of the page before\"}}},"
    "\"outputSchema\":" OBJECT_OF
    "\"servers\":{\"type\":\"array\",\"items\":" OBJECT_OF
    "\"server\":{\"type\":\"string\"},\"description\":{\"type\":\"string\"},"
    "\"categories\":{\"type\":\"array\",\"items\":"
    "{\"type\":\"string\"}},"
    "\"state\":{\"type\":\"string\"},"
    "\"toolCount\":{\"type\":\"integer\"},"
    "\"tools\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}},"
    "\"required\":[\"server\",\"tools\"]}},"
    "\"nextCursor\":{\"type\":\"string\"}},"
    "\"required\":[\"servers\"]}," READS_ONLY "},"

    "{\"name\":\"explain_tool\",\"title\":\"All about a tool\","
    "\"description\":\"Describe one tool: schemas, an example call, hints, and "
    "how its server is.\","
    "\"inputSchema\":" OBJECT_OF "\"server\":{\"type\":\"string\"},"
    "\"tool\":{\"type\":\"string\"},"
    "\"mcp_name\":" TEXT_THAT "\"The same as server\"},"
    "\"tool_name\":" TEXT_THAT "\"The same as tool\"}}},"
    "\"outputSchema\":" OBJECT_OF "\"server\":{\"type\":\"string\"},"
    "\"tool\":{\"type\":\"string\"},\"description\":{\"type\":\"string\"},"
    "\"inputSchema\":{\"type\":\"object\"},\"example\":{\"type\":\"object\"},"
    "\"health\":{\"type\":\"object\"},"
    "\"latency\":{\"type\":\"object\"}},"
    "\"required\":[\"server\",\"tool\",\"inputSchema\"]}," READS_ONLY "}"
    "]}";

#endif
