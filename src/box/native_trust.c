/* native_trust.c - the certificates that programs in a box trust. See native.c.
 *
 * If the relay ends TLS for a host (egress/edge.h), programs must trust the
 * authority of this installation. DIR/authority of the state holds
 *
 *   key.pem                   its key, 0600
 *   ID/ca-certificates.crt    the system's certificates, and one that is valid
 *                             for the hosts of ID only
 *   ID/cacerts                the same for Java, if the system has Java
 *
 * A box sees the files of its ID, never the key. They are written again when
 * they are a day old or the system's have changed; a running box keeps those
 * that it was started with. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "box/native_priv.h"
#include "egress/edge.h"
#include "loop/tls_keystore.h"

#define BUNDLE     "ca-certificates.crt"
#define JAVA       "/etc/ssl/certs/java/cacerts"
#define BUNDLE_MAX ((size_t)4 * 1024 * 1024)
#define DAY_S      (24 * 3600)

int mo_native_authority(struct mo_boxes *bs, const struct mo_egress_policy *p,
                        struct mo_err *e)
{
    const struct native *d = native_of(bs);
    mo_autobuf struct mo_buf path = {.max = MO_BOXREQ_PATH_MAX};
    int rc;

    if (bs->authority || p->ninject == 0)
        return 0;
    mo_buf_printf(&path, "%s/key.pem", d->authority_dir);
    rc = mo_buf_err(&path) ? mo_fail(e, MO_ETOOBIG, "authority")
                           : mo_file_mkdir(d->authority_dir, e);
    if (rc == 0)
        rc = mo_tls_authority_open(mo_buf_cstr(&path), &bs->authority, e);
    return rc;
}

/* The file that the system's programs use, or NULL. */
static const char *system_bundle(struct mo_file_stamp *stamp)
{
    static const char *const files[] = {
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    };

    for (size_t i = 0; i < MO_COUNT(files); i++) {
        mo_file_stamp(files[i], stamp);
        if (stamp->there)
            return files[i];
    }
    return NULL;
}

static int write_keystore(const char *dir, struct mo_span pem, struct mo_err *e)
{
    mo_autobuf struct mo_buf text = {.max = BUNDLE_MAX};
    mo_autobuf struct mo_buf path = {.max = MO_BOXREQ_PATH_MAX};
    struct mo_file_stamp java;
    int rc;

    mo_file_stamp(JAVA, &java);
    if (!java.there)
        return 0;
    mo_buf_printf(&path, "%s/cacerts", dir);
    rc = mo_buf_err(&path) ? mo_fail(e, MO_ETOOBIG, "authority")
                           : mo_tls_keystore(pem, &text, e);
    return rc ? rc
              : mo_file_save(mo_buf_cstr(&path), mo_buf_view(&text), 0644, e);
}

/* The bundle last: its time says when all was written. */
static int write_files(struct native *d, const struct mo_tls_names *names,
                       const char *system, const char *dir, const char *bundle,
                       struct mo_err *e)
{
    mo_autobuf struct mo_buf text = {.max = BUNDLE_MAX};
    int rc = mo_tls_authority_cert(d->bs.authority, names, &text, e);

    if (rc == 0 && system)
        rc = mo_file_read(system, BUNDLE_MAX / 2, &text, NULL, e);
    if (rc == 0 && mo_buf_err(&text))
        rc = mo_fail(e, mo_buf_err(&text), "certificates");
    if (rc == 0)
        rc = write_keystore(dir, mo_buf_view(&text), e);
    return rc ? rc : mo_file_save(bundle, mo_buf_view(&text), 0644, e);
}

int mo_native_trust(struct native *d, const struct mo_egress_policy *p,
                    char out[MO_BOXREQ_PATH_MAX + 1], struct mo_err *e)
{
    char id[MO_TLS_LIST_ID], file[MO_BOXREQ_PATH_MAX + 1];
    struct mo_file_stamp ours, theirs = {0};
    const char *system = system_bundle(&theirs);
    struct mo_tls_names names;
    int rc = mo_native_authority(&d->bs, p, e);

    out[0] = '\0';
    if (rc < 0 || p->ninject == 0)
        return rc;
    mo_edge_names(p, &names);
    mo_tls_authority_id(d->bs.authority, &names, id);
    if (snprintf(file, sizeof(file), "%s/%s/" BUNDLE, d->authority_dir, id) >=
        (int)sizeof(file))
        return mo_fail(e, MO_ETOOBIG, "authority");
    (void)snprintf(out, MO_BOXREQ_PATH_MAX + 1, "%.*s",
                   (int)(strlen(file) - sizeof("/" BUNDLE) + 1), file);
    mo_file_stamp(file, &ours);
    if (ours.there && ours.mtime.tv_sec > theirs.mtime.tv_sec &&
        ours.mtime.tv_sec + DAY_S > (time_t)(mo_wall_ms() / 1000))
        return 0;
    rc = mo_file_mkdir(out, e);
    return rc ? rc : write_files(d, &names, system, out, file, e);
}
