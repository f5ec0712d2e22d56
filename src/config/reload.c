/* reload.c - reloads the configuration and logs the changes; see reload.h. */
#include "config/reload.h"

#include <string.h>
#include <unistd.h>

#include "codec/json/json.h"

/* --- lists of keys ------------------------------------------------------- */

struct changes {
    struct mo_log *log;
    struct mo_reload_news *news;
};

static void begin_list(struct mo_buf *b)
{
    *b = (struct mo_buf){.max = MO_RELOAD_KEYS_MAX};
}

static void add_key(struct mo_buf *b, const char *path)
{
    mo_autobuf struct mo_buf item = {.max = MO_RELOAD_KEYS_MAX};

    (void)mo_buf_putc(&item, b->len ? ',' : '[');
    mo_json_quote(&item, mo_span_cstr(path));
    if (mo_buf_err(&item) == 0 && b->len + item.len + 1 < b->max)
        (void)mo_buf_span(b, mo_buf_view(&item));
}

static void end_list(struct mo_buf *b)
{
    if (b->len)
        (void)mo_buf_putc(b, ']');
}

static bool has_key(const struct mo_buf *b, const char *path)
{
    mo_autobuf struct mo_buf item = {.max = MO_RELOAD_KEYS_MAX};

    mo_json_quote(&item, mo_span_cstr(path));
    return b->len && item.len && memmem(b->p, b->len, item.p, item.len) != NULL;
}

static void note_waiting(void *ctx, const char *path, bool restart)
{
    if (restart)
        add_key(ctx, path);
}

static void note_change(void *ctx, const char *path, bool restart)
{
    struct changes *c = ctx;
    bool waits = restart && has_key(&c->news->waiting, path);

    add_key(&c->news->changed, path);
    mo_log(c->log, waits ? MO_WARN : MO_INFO, "config", "%s changed%s", path,
           waits     ? "; it takes effect after a restart"
           : restart ? "; it is again as it was at the start"
                     : "");
}

static void compare(const struct mo_config *old, const struct mo_config *first,
                    const struct mo_config *now, struct changes *c)
{
    struct mo_buf *waiting = &c->news->waiting;

    mo_config_diff(first, now, note_waiting, waiting);
    mo_config_diff(old, now, note_change, c);
    end_list(waiting);
    end_list(&c->news->changed);
    if (waiting->len)
        mo_log(c->log, MO_WARN, "config", "waiting for a restart: %.*s",
               (int)waiting->len, waiting->p);
}

/* --- reload -------------------------------------------------------------- */

/* Logs every problem with its place; the summary has only the first. */
static void log_problems(struct mo_log *log, const struct mo_config_report *rep)
{
    for (unsigned i = 0; i < rep->kept; i++)
        mo_log(log, rep->v[i].warning ? MO_WARN : MO_ERROR, "config", "%s",
               rep->v[i].text);
}

void mo_reload_log(struct mo_log *log, const struct mo_config *c)
{
    (void)mo_config_hide(c, log);
    (void)mo_log_levels(log, mo_span_cstr(c->log.level), NULL); /* checked */
    log->json = c->log.format == MO_FORMAT_JSON ||
                (c->log.format == MO_FORMAT_AUTO && !isatty(log->fd));
}

void mo_reload(struct mo_config_holder *h, const struct mo_config *first,
               struct mo_log *log, struct mo_config_report *rep,
               struct mo_reload_news *news, void (*apply)(void *ctx), void *ctx)
{
    const struct mo_config *old = mo_config_ref(h->now);
    struct changes c = {log, news};
    struct mo_err e = {0};

    begin_list(&news->changed);
    begin_list(&news->waiting);
    news->is_loaded = mo_config_reload(h, rep, &e) == 0;
    if (!news->is_loaded) {
        if (log->worker <= 1) { /* one worker tells for all of them */
            log_problems(log, rep);
            mo_log_err(log, MO_ERROR, "config", &e, "reload");
        }
    } else {
        mo_reload_log(log, h->now);
        apply(ctx);
        mo_log(log, MO_INFO, "config", "generation %llu loaded",
               (unsigned long long)h->now->generation);
        log_problems(log, rep);
        compare(old, first, h->now, &c);
    }
    mo_config_unref(old);
}
