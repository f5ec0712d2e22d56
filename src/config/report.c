/* report.c - adds problems to the report, which has a fixed size. */
#include <stdio.h>

#include "config/read.h"

static const char *const layer_words[] = {
    [MO_LAYER_DEFAULT] = "default", [MO_LAYER_FILE] = "",
    [MO_LAYER_DOTENV] = "",         [MO_LAYER_ENV] = "environment variable ",
    [MO_LAYER_FLAG] = "option --",
};

/* The next free slot, or NULL if the report is full; counts in any case. If it
 * is full, an error replaces a warning. */
static struct mo_config_problem *take_slot(struct mo_config_report *rep,
                                           bool warning)
{
    if (warning)
        rep->warnings++;
    else
        rep->errors++;
    if (rep->kept < MO_CONFIG_PROBLEMS_MAX) {
        struct mo_config_problem *p = &rep->v[rep->kept++];

        *p = (struct mo_config_problem){.warning = warning};
        return p;
    }
    for (unsigned i = 0; !warning && i < rep->kept; i++) {
        if (rep->v[i].warning) {
            rep->v[i] = (struct mo_config_problem){.warning = false};
            return &rep->v[i];
        }
    }
    return NULL;
}

static void put_place(struct mo_config_problem *p, const char *file,
                      unsigned line, unsigned col)
{
    p->line = line;
    p->col = col;
    if (col)
        (void)snprintf(p->text, sizeof(p->text), "%.200s:%u:%u: ", file, line,
                       col);
    else if (line)
        (void)snprintf(p->text, sizeof(p->text), "%.200s:%u: ", file, line);
    else
        (void)snprintf(p->text, sizeof(p->text), "%.200s: ", file);
}

/* Appends to p, unless it is NULL; a text that does not fit is cut. */
static void append_text(struct mo_config_problem *p, const char *fmt,
                        va_list ap) __attribute__((format(printf, 2, 0)));

static void append_text(struct mo_config_problem *p, const char *fmt,
                        va_list ap)
{
    size_t n = p ? strlen(p->text) : 0;

    if (p)
        (void)vsnprintf(p->text + n, sizeof(p->text) - n, fmt, ap);
}

void mo_config_problem(struct mo_config_report *rep, bool warning,
                       const char *fmt, ...)
{
    struct mo_config_problem *p = take_slot(rep, warning);
    va_list ap;

    va_start(ap, fmt);
    append_text(p, fmt, ap);
    va_end(ap);
}

void mo_config_error_at(struct mo_config_load *l, const char *at,
                        const char *fmt, ...)
{
    struct mo_config_problem *p = take_slot(l->rep, false);
    unsigned line, col;
    va_list ap;

    if (p) {
        mo_json_where(l->text, (size_t)(at - l->text.p), &line, &col);
        put_place(p, l->file, line, col);
    }
    va_start(ap, fmt);
    append_text(p, fmt, ap);
    va_end(ap);
}

void mo_config_error_of(struct mo_config_load *l, const void *field,
                        const char *fmt, ...)
{
    const struct mo_config_origin *o = mo_config_origin(l->cfg, field);
    struct mo_config_problem *p = take_slot(l->rep, false);
    va_list ap;

    if (p && o && o->line)
        put_place(p, o->name, o->line, o->col);
    else if (p && o && o->layer != MO_LAYER_DEFAULT)
        (void)snprintf(p->text, sizeof(p->text),
                       "%s%s: ", layer_words[o->layer], o->name);
    va_start(ap, fmt);
    append_text(p, fmt, ap);
    va_end(ap);
}
