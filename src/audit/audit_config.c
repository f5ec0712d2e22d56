#include "audit/audit_config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "codec/sha256.h"

/* Texts of a row that is about to be written. */
struct texts {
    char who[32], path[PATH_MAX], digest[MO_SHA256_HEX + 1];
};

static struct mo_audit_row row_of(struct texts *t, const char *path)
{
    (void)snprintf(t->who, sizeof(t->who), "uid %ld", (long)getuid());
    if (!realpath(path, t->path))
        (void)snprintf(t->path, sizeof(t->path), "%s", path);
    return (struct mo_audit_row){
        .event = "kind",
        .subject = MO_SPAN("config"),
        .who = mo_span_cstr(t->who),
        .path = mo_span_cstr(t->path),
    };
}

int mo_audit_confirmed_now(const struct mo_config *cfg, const char *path,
                           struct mo_span text, struct mo_err *e)
{
    struct texts t;
    struct mo_audit_row row = row_of(&t, path);

    mo_sha256_hex(text, t.digest);
    row.outcome = "confirmed";
    row.digest = t.digest;
    row.by = "command";
    return mo_audit_first_now(cfg, &row, e);
}

int mo_audit_untrusted_now(const struct mo_config *cfg,
                           const struct mo_config_report *rep, struct mo_err *e)
{
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < rep->nuntrusted; i++) {
        struct texts t;
        struct mo_audit_row row = row_of(&t, rep->untrusted[i].path);

        row.outcome = "refused";
        row.reason = rep->untrusted[i].reason;
        row.by = "command";
        rc = mo_audit_first_now(cfg, &row, e);
    }
    return rc;
}

static void note_untrusted(struct mo_audit *a,
                           const struct mo_config_report *rep)
{
    for (unsigned i = 0; i < rep->nuntrusted; i++) {
        struct texts t;
        struct mo_audit_row row = row_of(&t, rep->untrusted[i].path);

        row.reason = rep->untrusted[i].reason;
        mo_audit_attempt(a, &row);
    }
}

void mo_audit_reloaded(struct mo_audit *a, const char *path, const char *by,
                       const struct mo_config_report *rep,
                       const struct mo_reload_news *news)
{
    struct texts t;
    struct mo_audit_row row = row_of(&t, path);

    note_untrusted(a, rep);
    if (!news->is_loaded && !rep->nuntrusted) {
        row.reason = "invalid";
        mo_audit_attempt(a, &row);
    }
    if (!news->is_loaded || !news->changed.len)
        return;
    row.outcome = "loaded";
    row.by = by;
    row.changed = mo_buf_view(&news->changed);
    row.waiting = mo_buf_view(&news->waiting);
    mo_audit_note(a, &row);
}
