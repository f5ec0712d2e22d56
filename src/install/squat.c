#include "install/squat.h"

#include "base/nearest.h"

#define PART_MIN 8 /* a shorter last part, such as "mcp", says nothing */

/* Packages that are worth imitating. */
static const char *const npm[] = {
    "@modelcontextprotocol/server-brave-search",
    "@modelcontextprotocol/server-everything",
    "@modelcontextprotocol/server-filesystem",
    "@modelcontextprotocol/server-github",
    "@modelcontextprotocol/server-gitlab",
    "@modelcontextprotocol/server-google-maps",
    "@modelcontextprotocol/server-memory",
    "@modelcontextprotocol/server-postgres",
    "@modelcontextprotocol/server-puppeteer",
    "@modelcontextprotocol/server-redis",
    "@modelcontextprotocol/server-sequential-thinking",
    "@modelcontextprotocol/server-slack",
    "@modelcontextprotocol/inspector",
    "@playwright/mcp",
    "@upstash/context7-mcp",
    "@notionhq/notion-mcp-server",
    "@sentry/mcp-server",
    "@supabase/mcp-server-supabase",
    "@stripe/mcp",
    "@azure/mcp",
    "@cloudflare/mcp-server-cloudflare",
    "@brave/brave-search-mcp-server",
    "@zereight/mcp-gitlab",
    "@hubspot/mcp-server",
    "chrome-devtools-mcp",
    "exa-mcp-server",
    "figma-developer-mcp",
    "firecrawl-mcp",
    "mcp-remote",
    "tavily-mcp",
};
static const char *const pypi[] = {
    "arxiv-mcp-server",
    "awslabs-aws-documentation-mcp-server",
    "awslabs-core-mcp-server",
    "blender-mcp",
    "browser-use",
    "duckduckgo-mcp-server",
    "elevenlabs-mcp",
    "fastmcp",
    "markitdown-mcp",
    "mcp-atlassian",
    "mcp-clickhouse",
    "mcp-obsidian",
    "mcp-proxy",
    "mcp-server-fetch",
    "mcp-server-git",
    "mcp-server-motherduck",
    "mcp-server-qdrant",
    "mcp-server-sentry",
    "mcp-server-sqlite",
    "mcp-server-time",
    "minimax-mcp",
    "postgres-mcp",
    "serena-agent",
    "workspace-mcp",
};

static struct mo_span last_part(struct mo_span name)
{
    ptrdiff_t at = mo_span_find(name, '/');

    return at < 0 ? name : mo_span_skip(name, (size_t)at + 1);
}

static bool is_close(struct mo_span a, struct mo_span b, size_t least)
{
    size_t n = a.n > b.n ? a.n : b.n;

    return n >= least && mo_nearest_distance(a, b) <= (n >= 12 ? 2u : 1u);
}

const char *mo_squat_resembles(struct mo_span package, bool is_pypi)
{
    const char *const *known = is_pypi ? pypi : npm;
    size_t n = is_pypi ? MO_COUNT(pypi) : MO_COUNT(npm);

    for (size_t i = 0; i < n; i++) {
        if (mo_span_is(package, known[i]))
            return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        struct mo_span k = mo_span_cstr(known[i]);

        if (is_close(package, k, PART_MIN) ||
            is_close(last_part(package), last_part(k), PART_MIN))
            return known[i];
    }
    return NULL;
}

bool mo_squat_is_owner(struct mo_span registry_name, struct mo_span repository)
{
    struct mo_span owner;

    if (!mo_span_strip(&registry_name, MO_SPAN("io.github.")))
        return true;
    owner = mo_span_cut(&registry_name, '/');
    (void)mo_span_strip(&repository, MO_SPAN("git+"));
    if (!mo_span_strip(&repository, MO_SPAN("https://github.com/")) &&
        !mo_span_strip(&repository, MO_SPAN("git://github.com/")) &&
        !mo_span_strip(&repository, MO_SPAN("ssh://git@github.com/")))
        return false;
    return mo_span_ieq(mo_span_cut(&repository, '/'), owner);
}
