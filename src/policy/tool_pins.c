#include "policy/tool_pins.h"

#include <limits.h>
#include <stdio.h>

#include "base/file.h"
#include "base/log.h"
#include "base/map.h"

#define KEY_MAX  1024
#define TEXT_MAX ((size_t)4 * 1024 * 1024)

struct pin {
    char digest[MO_EXACT_DIGEST];
    size_t n;
    char def[]; /* {"server","tool","digest","description",...} */
};

struct mo_tool_pins {
    const struct mo_log *log;
    char path[PATH_MAX];
    struct mo_map map; /* "server NUL tool" -> struct pin * */
    bool dirty;
};

/* --- one tool ------------------------------------------------------------ */

static bool key_of(struct mo_buf *b, struct mo_span server, struct mo_span tool)
{
    mo_buf_span(b, server);
    mo_buf_putc(b, '\0');
    mo_buf_span(b, tool);
    return mo_buf_err(b) == 0;
}

static void put_json(struct mo_jw *w, const char *key, struct mo_span json)
{
    if (json.n == 0)
        return;
    mo_jw_key(w, key);
    mo_jw_raw(w, json);
}

static void put_def(struct mo_buf *b, const struct mo_tool *t)
{
    struct mo_jw w;

    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    mo_jw_member(&w, "server", t->def.server);
    mo_jw_member(&w, "tool", t->def.name);
    mo_jw_member(&w, "digest", mo_span_cstr(t->digest));
    mo_jw_member(&w, "description", t->def.description);
    put_json(&w, "inputSchema", t->def.schema);
    put_json(&w, "annotations", t->def.annotations);
    mo_jw_end(&w);
}

/* The last one of that name stays unless this one takes its place. */
static int keep(struct mo_tool_pins *p, struct mo_span key, const char *digest,
                struct mo_span def)
{
    struct pin *pin = mo_zalloc(sizeof(*pin) + def.n);
    void *old = NULL;
    int rc = 0;

    if (pin == NULL)
        return MO_ENOMEM;
    memcpy(pin->digest, digest, MO_EXACT_DIGEST);
    pin->n = def.n;
    memcpy(pin->def, def.p, def.n);
    rc = mo_map_put(&p->map, key, pin, &old);
    mo_free(rc < 0 ? pin : old);
    return rc;
}

static int pin_it(struct mo_tool_pins *p, struct mo_span key,
                  const struct mo_tool *t)
{
    struct mo_buf def;
    int rc = 0;

    mo_buf_init(&def, MO_TOOL_PINS_FILE_MAX);
    put_def(&def, t);
    rc = mo_buf_err(&def);
    if (rc == 0)
        rc = keep(p, key, t->digest, mo_buf_view(&def));
    mo_buf_fini(&def);
    p->dirty |= rc == 0;
    if (rc < 0)
        mo_log(p->log, MO_WARN, "pins", "no room to remember %.*s of %.*s",
               (int)t->def.name.n, t->def.name.p, (int)t->def.server.n,
               t->def.server.p);
    return rc;
}

/* --- the file ------------------------------------------------------------ */

void mo_tool_pins_flush(struct mo_tool_pins *p)
{
    struct mo_buf b;
    struct mo_err e;
    int rc = 0;
    bool any = false;

    if (!p->dirty)
        return;
    p->dirty = false;
    mo_buf_init(&b, MO_TOOL_PINS_FILE_MAX);
    mo_buf_puts(&b, "{\"version\":1,\"tools\":[");
    mo_map_each (en, &p->map) {
        const struct pin *pin = en->value;

        mo_buf_puts(&b, any ? ",\n" : "\n");
        mo_buf_put(&b, pin->def, pin->n);
        any = true;
    }
    mo_buf_puts(&b, "]}\n");
    rc = mo_buf_err(&b) ? mo_fail(&e, b.err, "too many tools")
                        : mo_file_replace(p->path, mo_buf_view(&b), &e);
    if (rc < 0)
        mo_log_err(p->log, MO_WARN, "pins", &e, "%s", p->path);
    mo_buf_fini(&b);
}

static int read_pin(struct mo_tool_pins *p, struct mo_json v,
                    struct mo_arena *a)
{
    struct mo_span server = {NULL, 0}, tool = {NULL, 0}, digest = {NULL, 0};
    char text[MO_EXACT_DIGEST] = "";
    struct mo_buf key;
    int rc = MO_EPROTO;

    mo_buf_init(&key, KEY_MAX);
    if (mo_json_str(mo_json_get(v, "server"), a, &server) == 0 &&
        mo_json_str(mo_json_get(v, "tool"), a, &tool) == 0 &&
        mo_json_str(mo_json_get(v, "digest"), a, &digest) == 0 &&
        digest.n < sizeof(text) && key_of(&key, server, tool)) {
        memcpy(text, digest.p, digest.n);
        rc = keep(p, mo_buf_view(&key), text, mo_json_text(v));
    }
    mo_buf_fini(&key);
    return rc;
}

static int read_file(struct mo_tool_pins *p, struct mo_err *e)
{
    struct mo_json_doc doc;
    struct mo_json_iter it;
    struct mo_json key, val;
    struct mo_arena a;
    struct mo_buf b;
    int rc = 0;

    mo_buf_init(&b, MO_TOOL_PINS_FILE_MAX);
    mo_arena_init(&a, MO_TOOL_PINS_FILE_MAX);
    rc = mo_file_read(p->path, MO_TOOL_PINS_FILE_MAX, &b, NULL, e);
    if (rc == MO_ENOTFOUND) {
        rc = 0;
    } else if (rc == 0) {
        rc = mo_json_parse(mo_buf_view(&b), 0, &doc, e);
        if (rc == 0)
            mo_json_iter(&it, mo_json_get(doc.root, "tools"));
        while (rc == 0 && mo_json_next(&it, &key, &val))
            rc = read_pin(p, val, &a);
        if (rc < 0)
            rc = mo_fail(e, MO_EINVAL,
                         "%s: broken; look at it, and remove it to see every "
                         "tool anew",
                         p->path);
    }
    mo_arena_fini(&a);
    mo_buf_fini(&b);
    return rc;
}

/* --- what the agent asks ------------------------------------------------- */

bool mo_tool_pins_look(struct mo_tool_pins *p, const struct mo_tool *t,
                       struct mo_buf *before)
{
    struct pin *pin = NULL;
    struct mo_buf key;
    bool same = true;

    mo_buf_init(&key, KEY_MAX);
    if (key_of(&key, t->def.server, t->def.name))
        pin = mo_map_get(&p->map, mo_buf_view(&key));
    if (pin) {
        same = strcmp(pin->digest, t->digest) == 0;
        if (!same)
            mo_buf_put(before, pin->def, pin->n);
    } else {
        (void)pin_it(p, mo_buf_view(&key), t);
    }
    mo_buf_fini(&key);
    return same;
}

int mo_tool_pins_accept(struct mo_tool_pins *p, const struct mo_tool *t)
{
    struct mo_buf key;
    int rc = MO_ETOOBIG;

    mo_buf_init(&key, KEY_MAX);
    if (key_of(&key, t->def.server, t->def.name))
        rc = pin_it(p, mo_buf_view(&key), t);
    mo_buf_fini(&key);
    return rc;
}

/* --- what others ask ----------------------------------------------------- */

static struct mo_span text_of(struct mo_json v)
{
    return v.p ? mo_json_text(v) : (struct mo_span){NULL, 0};
}

int mo_tool_pins_read_tool(struct mo_span server, struct mo_span name,
                           struct mo_json item, struct mo_arena *a,
                           struct mo_tool *out)
{
    struct mo_json d = mo_json_get(item, "description");

    *out = (struct mo_tool){.def = {.server = server, .name = name}};
    if (mo_json_is(d, MO_JSON_STRING) &&
        mo_json_str(d, a, &out->def.description) < 0)
        return MO_ENOMEM;
    out->def.schema = text_of(mo_json_get(item, "inputSchema"));
    out->def.annotations = text_of(mo_json_get(item, "annotations"));
    mo_exact_tool(&out->def, out->digest);
    return 0;
}

bool mo_tool_pins_changed(void *ctx, struct mo_span server, struct mo_span name,
                          struct mo_json item)
{
    const struct mo_tool_pins *p = ctx;
    const struct pin *pin = NULL;
    bool changed = false;
    struct mo_arena a;
    struct mo_tool t;
    struct mo_buf key;

    mo_buf_init(&key, KEY_MAX);
    if (key_of(&key, server, name))
        pin = mo_map_get(&p->map, mo_buf_view(&key));
    mo_buf_fini(&key);
    if (!pin)
        return false;
    mo_arena_init(&a, TEXT_MAX);
    if (mo_tool_pins_read_tool(server, name, item, &a, &t) == 0)
        changed = strcmp(pin->digest, t.digest) != 0;
    mo_arena_fini(&a);
    return changed;
}

int mo_tool_pins_open(const struct mo_log *log, const char *dir,
                      struct mo_tool_pins **out, struct mo_err *e)
{
    struct mo_tool_pins *p = mo_new(struct mo_tool_pins);
    int rc = 0;

    if (p == NULL)
        return mo_fail(e, MO_ENOMEM, "pins");
    p->log = log;
    mo_map_init(&p->map, MO_TOOL_PINS_MAX);
    rc = snprintf(p->path, sizeof(p->path), "%s/" MO_TOOL_PINS_FILE, dir);
    rc = (size_t)rc >= sizeof(p->path)
             ? mo_fail(e, MO_ETOOBIG, "store.dir is too long")
             : read_file(p, e);
    if (rc < 0) {
        mo_tool_pins_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

void mo_tool_pins_close(struct mo_tool_pins *p)
{
    if (p == NULL)
        return;
    mo_map_each (en, &p->map)
        mo_free(en->value);
    mo_map_fini(&p->map);
    mo_free(p);
}
