/* versions.c - checks whether this version may use the state, and whether the
 * servers of one database speak a version of the protocol that we speak. Redis
 * is not asked: a server that must not use it says so in its log. */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "cli/state/archive.h"
#include "config/state_record.h"
#include "peer/others.h"
#include "store/sqlite_file.h"

struct foreign { /* the last server without a version in common */
    char name[MO_INSTANCE_MAX];
    uint64_t speaks[2];
};

static void on_peer(void *ctx, struct mo_span id, struct mo_span doc)
{
    struct foreign *o = ctx;
    uint64_t speaks[2];

    if (!mo_span_strip(&id, MO_SPAN("peer:")) || mo_other_speaks(doc, speaks))
        return;
    (void)snprintf(o->name, sizeof(o->name), "%.*s",
                   (int)(id.n < sizeof(o->name) ? id.n : sizeof(o->name) - 1),
                   id.p);
    o->speaks[0] = speaks[0];
    o->speaks[1] = speaks[1];
}

void mo_check_versions(const struct mo_doctor *d, struct mo_finding *f)
{
    const char *dir = d->cfg->store.dir;
    struct mo_state_version files = {.format = 0}, db = {.format = 0};
    struct foreign other = {.name = ""};
    char path[PATH_MAX], text[64] = "";
    struct mo_err e = {0};
    int rc = mo_state_record_check(dir, &e);

    if (rc == 0)
        rc = mo_state_record_read(dir, &files, &e);
    if (rc == 0 && mo_backup_db_path(d->cfg, path, sizeof(path), NULL) == 0 &&
        access(path, F_OK) == 0)
        rc = mo_sqlite_file_peek(path, "peer:", &db, on_peer, &other, &e);
    if (rc < 0) {
        mo_found(f, MO_HEALTH_FAIL, "%s", e.msg);
        mo_advise(f, "docs/upgrade.md says which versions fit together");
        return;
    }
    if (db.format)
        (void)snprintf(text, sizeof(text), ", database: format %u", db.format);
    if (other.name[0]) {
        mo_found(f, MO_HEALTH_WARN,
                 "server %s speaks versions %llu to %llu between servers: "
                 "nothing is relayed to it",
                 other.name, (unsigned long long)other.speaks[0],
                 (unsigned long long)other.speaks[1]);
        mo_advise(f, "start the same version on all servers; one that was "
                     "killed stays listed until another starts");
        return;
    }
    mo_found(f, MO_HEALTH_OK, "state directory: format %u%s", files.format,
             text);
}
