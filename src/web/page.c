/* page.c - a first page, until the real one is built in: it says what this
 * server is and where to look. No script, no outside resource. */
#include "web/page.h"

#include "base/mem.h"

static const char html[] =
    "<!doctype html>\n"
    "<html lang=\"en\">\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<title>MCP Orchestrator</title>\n"
    "<link rel=\"stylesheet\" href=\"/page.css\">\n"
    "<link rel=\"icon\" href=\"/icon.svg\">\n"
    "<main>\n"
    "<h1>MCP Orchestrator</h1>\n"
    "<p>The server is running. Version <code>" MO_VERSION "</code>.</p>\n"
    "<p>The conversation page is not built in yet. What answers today:</p>\n"
    "<ul>\n"
    "<li><a href=\"/readyz\"><code>/readyz</code></a> is it ready, and if not "
    "why</li>\n"
    "<li><a href=\"/healthz\"><code>/healthz</code></a> is it alive</li>\n"
    "<li><a href=\"/metrics\"><code>/metrics</code></a> counts for "
    "Prometheus</li>\n"
    "</ul>\n"
    "<p>In a terminal, <code>mcp-orchestrator doctor</code> says what works on "
    "this machine and what to do about what does not.</p>\n"
    "</main>\n"
    "</html>\n";

static const char css[] =
    ":root{color-scheme:light dark;--ink:#292524;--soft:#78716c;"
    "--ground:#fafaf9;--line:#e7e5e4;--act:#0f766e}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e7e5e4;--soft:#a8a29e;"
    "--ground:#1c1917;--line:#44403c;--act:#2dd4bf}}\n"
    "body{margin:0;background:var(--ground);color:var(--ink);"
    "font:14px/1.55 Inter,system-ui,sans-serif}\n"
    "main{max-width:720px;margin:15vh auto;padding:24px;"
    "border:1px solid var(--line);border-radius:12px}\n"
    "h1{font-size:1.1em;margin:0 0 12px}\n"
    "code{font:12.5px \"JetBrains Mono\",ui-monospace,monospace}\n"
    "a{color:var(--act)}\n"
    "li{color:var(--soft)}\n";

static const char icon[] =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\">"
    "<rect x=\"2\" y=\"2\" width=\"12\" height=\"12\" rx=\"3\" fill=\"none\" "
    "stroke=\"#0f766e\" stroke-width=\"1.5\"/>"
    "<circle cx=\"8\" cy=\"8\" r=\"2\" fill=\"#0f766e\"/></svg>\n";

const struct mo_asset mo_assets[] = {
    {"/", "text/html; charset=utf-8", html, sizeof(html) - 1},
    {"/page.css", "text/css; charset=utf-8", css, sizeof(css) - 1},
    {"/icon.svg", "image/svg+xml", icon, sizeof(icon) - 1},
};
const size_t mo_nassets = MO_COUNT(mo_assets);
