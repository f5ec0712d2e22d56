#include "box/box_trust.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "codec/ca_files.h"
#include "egress/edge.h"
#include "loop/tls_keystore.h"

#define JAVA       "/etc/ssl/certs/java/cacerts"
#define BUNDLE_MAX ((size_t)4 * 1024 * 1024)
#define DAY_S      (24 * 3600)

int mo_box_trust_open(struct mo_boxes *bs, const struct mo_egress_policy *p,
                      struct mo_err *e)
{
    mo_autobuf struct mo_buf path = {.max = MO_BOXREQ_PATH_MAX};
    int rc;

    if (bs->authority || p->ninject == 0)
        return 0;
    mo_buf_printf(&path, "%s/key.pem", bs->authority_dir);
    rc = mo_buf_err(&path) ? mo_fail(e, MO_ETOOBIG, "authority")
                           : mo_file_mkdir(bs->authority_dir, e);
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

static int put_path(struct mo_buf *b, const char *dir, const char *name,
                    struct mo_err *e)
{
    mo_buf_printf(b, "%s/%s", dir, name);
    return mo_buf_err(b) ? mo_fail(e, MO_ETOOBIG, "authority") : 0;
}

static int write_keystore(const char *dir, struct mo_span pem, struct mo_err *e)
{
    mo_autobuf struct mo_buf text = {.max = BUNDLE_MAX};
    mo_autobuf struct mo_buf path = {.max = MO_BOXREQ_PATH_MAX};
    int rc = put_path(&path, dir, MO_CA_JAVA, e);

    if (rc == 0)
        rc = mo_tls_keystore(pem, &text, e);
    return rc ? rc
              : mo_file_save(mo_buf_cstr(&path), mo_buf_view(&text), 0644, e);
}

/* The bundle last: its time says when all was written. */
static int write_files(struct mo_boxes *bs, const struct mo_tls_names *names,
                       bool java, const char *dir, const char *bundle,
                       struct mo_err *e)
{
    mo_autobuf struct mo_buf text = {.max = BUNDLE_MAX};
    struct mo_file_stamp stamp;
    const char *system = system_bundle(&stamp);
    int rc = mo_tls_authority_cert(bs->authority, names, &text, e);

    if (rc == 0 && system)
        rc = mo_file_read(system, BUNDLE_MAX / 2, &text, NULL, e);
    if (rc == 0 && mo_buf_err(&text))
        rc = mo_fail(e, mo_buf_err(&text), "certificates");
    if (rc == 0 && java)
        rc = write_keystore(dir, mo_buf_view(&text), e);
    return rc ? rc : mo_file_save(bundle, mo_buf_view(&text), 0644, e);
}

static bool is_there(const char *path)
{
    struct mo_file_stamp stamp;

    mo_file_stamp(path, &stamp);
    return stamp.there;
}

static bool is_fresh(const char *bundle)
{
    struct mo_file_stamp ours, theirs = {0};

    (void)system_bundle(&theirs);
    mo_file_stamp(bundle, &ours);
    return ours.there && ours.mtime.tv_sec > theirs.mtime.tv_sec &&
           ours.mtime.tv_sec + DAY_S > (time_t)(mo_wall_ms() / 1000);
}

int mo_box_trust_write(struct mo_boxes *bs, const struct mo_egress_policy *p,
                       bool java, char out[MO_BOX_TRUST_MAX], struct mo_err *e)
{
    mo_autobuf struct mo_buf bundle = {.max = MO_BOXREQ_PATH_MAX};
    mo_autobuf struct mo_buf store = {.max = MO_BOXREQ_PATH_MAX};
    char id[MO_TLS_LIST_ID];
    struct mo_tls_names names;
    int rc = mo_box_trust_open(bs, p, e);

    out[0] = '\0';
    if (rc < 0 || p->ninject == 0)
        return rc;
    mo_edge_names(p, &names);
    mo_tls_authority_id(bs->authority, &names, id);
    if (snprintf(out, MO_BOX_TRUST_MAX, "%s/%s", bs->authority_dir, id) >=
            MO_BOX_TRUST_MAX ||
        put_path(&bundle, out, MO_CA_BUNDLE, e) < 0 ||
        put_path(&store, out, MO_CA_JAVA, e) < 0)
        return mo_fail(e, MO_ETOOBIG, "authority");
    java |= is_there(JAVA);
    if (is_fresh(mo_buf_cstr(&bundle)) &&
        (!java || is_there(mo_buf_cstr(&store))))
        return 0;
    rc = mo_file_mkdir(out, e);
    return rc ? rc
              : write_files(bs, &names, java, out, mo_buf_cstr(&bundle), e);
}
