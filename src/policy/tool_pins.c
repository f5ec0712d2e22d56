/* tool_pins.c - the map of pins and its file; see tool_pins.h. */
#include "policy/tool_pins.h"

#include <limits.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "codec/sha256.h"

/* Bytes of two names; a catalogue accepts 4,096 for each. */
#define KEY_MAX   ((size_t)16 * 1024)
#define TEXT_MAX  ((size_t)4 * 1024 * 1024)
/* Bytes of a tool's name in the log. */
#define SHOWN_MAX ((size_t)200)

/* How a pin differs from the file. */
enum pin_state {
    PIN_SAVED,    /* it is in the file */
    PIN_SEEN,     /* first seen here; a pin in the file is older and stays */
    PIN_ACCEPTED, /* accepted here by a person; replaces the pin of the file */
};

struct pin {
    enum pin_state state;
    bool accepted;  /* by a person, anywhere */
    uint64_t at_ms; /* when it was seen or accepted; 0: not known, long ago */
    char digest[MO_EXACT_DIGEST];
    size_t n;
    char def[]; /* {"server","tool","digest","description",...,"at"} */
};

struct mo_tool_pins {
    const struct mo_log *log;
    char path[PATH_MAX];
    struct mo_map map; /* "server NUL tool" -> struct pin * */
    bool dirty;
    atomic_uint *shared; /* NULL: there are no other workers */
    unsigned seen;       /* of it */
    bool merged;         /* with pins of other servers, not told yet */
    void (*on_change)(void *ctx);
    void *on_change_ctx;
};

/* --- one tool ------------------------------------------------------------ */

static bool make_key(struct mo_buf *b, struct mo_span server,
                     struct mo_span tool)
{
    mo_buf_span(b, server);
    mo_buf_putc(b, '\0');
    mo_buf_span(b, tool);
    return mo_buf_err(b) == 0;
}

static void put_def(struct mo_buf *b, const struct mo_tool *t, bool accepted,
                    uint64_t at_ms)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member(&w, "server", t->def.server);
    mo_jw_member(&w, "tool", t->def.name);
    mo_jw_member(&w, "digest", mo_span_cstr(t->digest));
    mo_jw_member(&w, "description", t->def.description);
    mo_jw_member_raw(&w, "inputSchema", t->def.schema);
    mo_jw_member_raw(&w, "annotations", t->def.annotations);
    mo_jw_member_u64(&w, "at", at_ms);
    if (accepted)
        mo_jw_member_bool(&w, "accepted", true);
    mo_jw_end(&w);
}

/* The members that put_def() has added to the definition. */
static void read_made(struct pin *pin)
{
    struct mo_json_doc doc;

    if (mo_json_parse(mo_span(pin->def, pin->n), 0, &doc, NULL) < 0)
        return;
    (void)mo_json_u64(mo_json_get(doc.root, "at"), &pin->at_ms);
    (void)mo_json_bool(mo_json_get(doc.root, "accepted"), &pin->accepted);
}

/* Adds or replaces the pin of the key; on failure the old one stays. */
static int store_pin(struct mo_map *m, struct mo_span key, enum pin_state state,
                     const char *digest, struct mo_span def)
{
    struct pin *pin = mo_zalloc(sizeof(*pin) + def.n);
    void *old = NULL;
    int rc = 0;

    if (pin == NULL)
        return MO_ENOMEM;
    pin->state = state;
    memcpy(pin->digest, digest, MO_EXACT_DIGEST);
    pin->n = def.n;
    memcpy(pin->def, def.p, def.n);
    read_made(pin);
    rc = mo_map_put(m, key, pin, &old);
    mo_free(rc < 0 ? pin : old);
    return rc;
}

static void log_not_pinned(const struct mo_tool_pins *p,
                           const struct mo_tool *t)
{
    struct mo_span name = mo_span_head(t->def.name, SHOWN_MAX);

    mo_log(p->log, MO_WARN, "pins", "too many pins; %.*s of %.*s is not pinned",
           (int)name.n, name.p, (int)t->def.server.n, t->def.server.p);
}

static int pin_tool(struct mo_tool_pins *p, struct mo_span key,
                    enum pin_state state, const struct mo_tool *t)
{
    mo_autobuf struct mo_buf def = {.max = MO_TOOL_PINS_FILE_MAX};
    const struct pin *old = mo_map_get(&p->map, key);
    uint64_t at_ms = mo_wall_ms();
    int rc = 0;

    if (old && old->at_ms >= at_ms) /* by a clock that is ahead */
        at_ms = old->at_ms + 1;
    put_def(&def, t, state == PIN_ACCEPTED, at_ms);
    rc = mo_buf_err(&def);
    if (rc == 0)
        rc = store_pin(&p->map, key, state, t->digest, mo_buf_view(&def));
    p->dirty |= rc == 0;
    if (rc < 0)
        log_not_pinned(p, t);
    return rc;
}

static void free_pins(struct mo_map *m)
{
    mo_map_each (en, m)
        mo_free(en->value);
    mo_map_fini(m);
}

/* --- the file ------------------------------------------------------------ */

static int read_pin(struct mo_map *m, struct mo_json v, struct mo_arena *a)
{
    struct mo_span server = {NULL, 0}, tool = {NULL, 0}, digest = {NULL, 0};
    char text[MO_EXACT_DIGEST] = "";
    mo_autobuf struct mo_buf key = {.max = KEY_MAX};
    int rc = MO_EPROTO;

    if (mo_json_str(mo_json_get(v, "server"), a, &server) == 0 &&
        mo_json_str(mo_json_get(v, "tool"), a, &tool) == 0 &&
        mo_json_str(mo_json_get(v, "digest"), a, &digest) == 0 &&
        digest.n < sizeof(text) && make_key(&key, server, tool)) {
        memcpy(text, digest.p, digest.n);
        rc = store_pin(m, mo_buf_view(&key), PIN_SAVED, text, mo_json_text(v));
    }
    return rc;
}

/* Parses the text of the file; NULL: the file does not exist. */
static int read_pins(const char *path, struct mo_span text, struct mo_map *m,
                     struct mo_err *e)
{
    struct mo_json_doc doc;
    mo_autoarena struct mo_arena a = {.cap = MO_TOOL_PINS_FILE_MAX};
    int rc = 0;

    if (text.p == NULL)
        return 0;
    rc = mo_json_parse(text, 0, &doc, e);
    if (rc == 0)
        mo_json_each_while (it, mo_json_get(doc.root, "tools"), rc == 0)
            rc = read_pin(m, it.val, &a);
    if (rc < 0)
        rc = mo_fail(e, MO_EINVAL,
                     "%s is damaged; repair it, or remove it to discard "
                     "all pins",
                     path);
    return rc;
}

static int read_file(struct mo_tool_pins *p, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_TOOL_PINS_FILE_MAX};
    int rc = 0;

    rc = mo_file_read(p->path, MO_TOOL_PINS_FILE_MAX, &b, NULL, e);
    if (rc == 0)
        rc = read_pins(p->path, mo_span(b.p ? b.p : "", b.len), &p->map, e);
    return rc == MO_ENOTFOUND ? 0 : rc;
}

static void put_pins(const struct mo_map *m, struct mo_buf *b)
{
    bool any = false;

    mo_buf_puts(b, "{\"version\":1,\"tools\":[");
    mo_map_each (en, m) {
        const struct pin *pin = en->value;

        mo_buf_puts(b, any ? ",\n" : "\n");
        mo_buf_put(b, pin->def, pin->n);
        any = true;
    }
    mo_buf_puts(b, "]}\n");
}

struct merge {
    const struct mo_tool_pins *p;
    struct mo_map next; /* the pins of the file and ours */
    bool keeps;         /* nothing is written: ours stay as they are */
};

/* Adds our new pins to those of the file, as they are here. Where both saw the
 * tool first, the file's pin stays. */
static int add_own(struct merge *g, struct mo_err *e)
{
    mo_map_each (en, &g->p->map) {
        const struct pin *pin = en->value;
        int rc = 0;

        if (pin->state == PIN_SAVED ||
            (pin->state == PIN_SEEN && mo_map_get(&g->next, mo_map_key(en))))
            continue;
        rc = store_pin(&g->next, mo_map_key(en),
                       g->keeps ? pin->state : PIN_SAVED, pin->digest,
                       mo_span(pin->def, pin->n));
        if (rc < 0)
            return mo_fail(e, rc, "too many tools are pinned");
    }
    return 0;
}

static int merge_pins(void *ctx, struct mo_span text, struct mo_buf *out,
                      struct mo_err *e)
{
    struct merge *g = ctx;
    int rc = read_pins(g->p->path, text, &g->next, e);

    if (rc == 0)
        rc = add_own(g, e);
    if (rc == 0)
        put_pins(&g->next, out);
    return rc;
}

/* Takes what was written to the file, and tells the other workers. */
static void take_pins(struct mo_tool_pins *p, const struct mo_map *written)
{
    free_pins(&p->map);
    p->map = *written;
    if (p->shared && atomic_fetch_add(p->shared, 1) == p->seen)
        p->seen++; /* else another one has written since we read */
}

void mo_tool_pins_flush(struct mo_tool_pins *p)
{
    struct merge g = {.p = p};
    const struct mo_file_change c = {.path = p->path,
                                     .max = MO_TOOL_PINS_FILE_MAX,
                                     .edit = merge_pins,
                                     .ctx = &g};
    struct mo_err e;

    if (!p->dirty)
        return;
    p->dirty = false; /* a failed write is not repeated */
    mo_map_init(&g.next, MO_TOOL_PINS_MAX);
    if (mo_file_change(&c, &e) < 0) {
        mo_log_err(p->log, MO_WARN, "pins", &e, "%s", p->path);
        free_pins(&g.next);
        return;
    }
    take_pins(p, &g.next);
    if (p->on_change)
        p->on_change(p->on_change_ctx);
}

void mo_tool_pins_share(struct mo_tool_pins *p, atomic_uint *changes)
{
    p->shared = changes;
    p->seen = atomic_load(changes) - 1; /* it was read before */
}

bool mo_tool_pins_catch_up(struct mo_tool_pins *p)
{
    unsigned seen = p->shared ? atomic_load(p->shared) : p->seen;
    bool was_merged = p->merged;
    struct merge g = {.p = p, .keeps = true};
    mo_autobuf struct mo_buf b = {.max = MO_TOOL_PINS_FILE_MAX};
    struct mo_err e;
    int rc;

    p->merged = false;
    if (seen == p->seen)
        return was_merged;
    p->seen = seen;
    mo_map_init(&g.next, MO_TOOL_PINS_MAX);
    rc = mo_file_read(p->path, MO_TOOL_PINS_FILE_MAX, &b, NULL, &e);
    if (rc == 0)
        rc = read_pins(p->path, mo_buf_view(&b), &g.next, &e);
    if (rc == 0)
        rc = add_own(&g, &e);
    if (rc < 0) {
        if (rc != MO_ENOTFOUND)
            mo_log_err(p->log, MO_WARN, "pins", &e, "%s", p->path);
        free_pins(&g.next);
        return false;
    }
    free_pins(&p->map);
    p->map = g.next;
    return true;
}

/* --- other servers ------------------------------------------------------- */

/* Which of two pins of a tool counts; all servers answer alike. */
static bool comes_before(const struct pin *a, const struct pin *b)
{
    if (a->accepted != b->accepted)
        return a->accepted;
    if (a->at_ms != b->at_ms)
        return a->accepted ? a->at_ms > b->at_ms : a->at_ms < b->at_ms;
    return strcmp(a->digest, b->digest) < 0;
}

/* The pins of all rows, a map like ours. A damaged row is left out. */
static void read_theirs(const struct mo_tool_pins *p,
                        const struct mo_map *theirs, struct mo_map *out)
{
    mo_map_init(out, MO_TOOL_PINS_MAX);
    mo_map_each (en, theirs) {
        const struct mo_shared_row *row = en->value;
        struct mo_err e;

        if (!row->is_gone && read_pins("a row of another server",
                                       mo_span(row->doc, row->n), out, &e) < 0)
            mo_log_err(p->log, MO_WARN, "pins", &e, "not used");
    }
}

struct takeover {
    const struct mo_tool_pins *p;
    const struct mo_map *theirs; /* their pins */
    struct mo_map next;          /* the pins of the file and theirs */
    bool changed;
};

static int add_theirs(void *ctx, struct mo_span text, struct mo_buf *out,
                      struct mo_err *e)
{
    struct takeover *x = ctx;
    int rc = read_pins(x->p->path, text, &x->next, e);

    if (rc < 0)
        return rc;
    mo_map_each (en, x->theirs) {
        const struct pin *their = en->value;
        const struct pin *own = mo_map_get(&x->next, mo_map_key(en));

        if (own && !comes_before(their, own))
            continue;
        rc = store_pin(&x->next, mo_map_key(en), PIN_SAVED, their->digest,
                       mo_span(their->def, their->n));
        if (rc < 0)
            return mo_fail(e, rc, "too many tools are pinned");
        x->changed = true;
    }
    if (x->changed)
        put_pins(&x->next, out);
    return 0;
}

/* The row of one MCP server, while it is written. */
struct server_row {
    struct mo_buf doc;
    bool is_lacking; /* theirs has not all of it */
};

static struct server_row *row_of(struct mo_map *rows, struct mo_span server)
{
    struct server_row *row = mo_map_get(rows, server);

    if (row)
        return row;
    row = mo_new(struct server_row);
    if (!row)
        return NULL;
    mo_buf_init(&row->doc, MO_STORE_DOC_MAX);
    (void)mo_buf_puts(&row->doc, "{\"tools\":[");
    if (mo_map_put(rows, server, row, NULL) < 0) {
        mo_free(row);
        row = NULL;
    }
    return row;
}

/* Gives them the rows of servers of which they lack a pin. */
static void put_lacking(const struct mo_tool_pins *p,
                        const struct mo_map *theirs, struct mo_shared_rows *r)
{
    struct mo_map rows;

    mo_map_init(&rows, MO_TOOL_PINS_MAX);
    mo_map_each (en, &p->map) {
        const struct pin *pin = en->value;
        const struct pin *their = mo_map_get(theirs, mo_map_key(en));
        struct mo_span name = mo_map_key(en);
        struct server_row *row = row_of(&rows, mo_span_cut(&name, '\0'));

        if (!row)
            continue;
        if (row->doc.p[row->doc.len - 1] == '}')
            (void)mo_buf_puts(&row->doc, ",\n");
        (void)mo_buf_put(&row->doc, pin->def, pin->n);
        row->is_lacking |= !their || comes_before(pin, their);
    }
    mo_map_each (en, &rows) {
        struct server_row *row = en->value;
        char id[MO_SHA256_HEX + 1];

        mo_sha256_hex(mo_map_key(en), id);
        if (row->is_lacking && mo_buf_puts(&row->doc, "]}") == 0)
            mo_shared_rows_put(r, MO_TOOL_PINS_KIND, mo_span_cstr(id),
                               mo_buf_view(&row->doc));
        else if (row->is_lacking)
            mo_log(p->log, MO_WARN, "pins",
                   "too many tools of one server: other servers do not get "
                   "their pins");
        mo_buf_fini(&row->doc);
        mo_free(row);
    }
    mo_map_fini(&rows);
}

void mo_tool_pins_merge(struct mo_tool_pins *p, const struct mo_map *theirs,
                        struct mo_shared_rows *r)
{
    struct mo_map pins;
    struct takeover x = {.p = p, .theirs = &pins};
    const struct mo_file_change c = {.path = p->path,
                                     .max = MO_TOOL_PINS_FILE_MAX,
                                     .edit = add_theirs,
                                     .ctx = &x};
    struct mo_err e;
    int rc;

    mo_tool_pins_flush(p);
    read_theirs(p, theirs, &pins);
    mo_map_init(&x.next, MO_TOOL_PINS_MAX);
    rc = mo_file_change(&c, &e);
    if (rc < 0)
        mo_log_err(p->log, MO_WARN, "pins", &e, "%s", p->path);
    if (rc == 0 && x.changed) {
        take_pins(p, &x.next);
        p->merged = true;
    } else {
        free_pins(&x.next);
    }
    put_lacking(p, &pins, r);
    free_pins(&pins);
}

void mo_tool_pins_on_change(struct mo_tool_pins *p, void (*changed)(void *ctx),
                            void *ctx)
{
    p->on_change = changed;
    p->on_change_ctx = ctx;
}

/* --- comparing and accepting --------------------------------------------- */

bool mo_tool_pins_look(struct mo_tool_pins *p, const struct mo_tool *t,
                       struct mo_buf *before)
{
    struct pin *pin = NULL;
    mo_autobuf struct mo_buf key = {.max = KEY_MAX};
    bool same = true;

    if (!make_key(&key, t->def.server, t->def.name)) {
        log_not_pinned(p, t);
        return true;
    }
    pin = mo_map_get(&p->map, mo_buf_view(&key));
    if (pin) {
        same = strcmp(pin->digest, t->digest) == 0;
        if (!same)
            mo_buf_put(before, pin->def, pin->n);
    } else {
        (void)pin_tool(p, mo_buf_view(&key), PIN_SEEN, t);
    }
    return same;
}

int mo_tool_pins_accept(struct mo_tool_pins *p, const struct mo_tool *t)
{
    mo_autobuf struct mo_buf key = {.max = KEY_MAX};
    int rc = MO_ETOOBIG;

    if (make_key(&key, t->def.server, t->def.name))
        rc = pin_tool(p, mo_buf_view(&key), PIN_ACCEPTED, t);
    return rc;
}

bool mo_tool_pins_changed(void *ctx, struct mo_span server, struct mo_span name,
                          struct mo_json item)
{
    const struct mo_tool_pins *p = ctx;
    const struct pin *pin = NULL;
    mo_autoarena struct mo_arena a = {.cap = TEXT_MAX};
    struct mo_tool t = {.source = 0};
    mo_autobuf struct mo_buf key = {.max = KEY_MAX};

    if (make_key(&key, server, name))
        pin = mo_map_get(&p->map, mo_buf_view(&key));
    return pin && mo_tool_read(&a, server, name, item, &t) == 0 &&
           strcmp(pin->digest, t.digest) != 0;
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
    free_pins(&p->map);
    mo_free(p);
}
