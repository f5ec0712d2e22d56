/* ca_files.h - where programs look for the certificates that they trust.
 *
 * A box with certificates of its own (box/box_trust.h) has the first file of
 * the table, which the variables name, and the others where its root has them.
 * Constants only. */
#ifndef MO_CODEC_CA_FILES_H
#define MO_CODEC_CA_FILES_H

#define MO_CA_BUNDLE "ca-certificates.crt" /* PEM */
#define MO_CA_JAVA   "cacerts"             /* a keystore */
#define MO_CA_PATH   "/run/ca-certificates.crt"
#define MO_CA_FILES  7
/* A directory in place of MO_CA_PATH, with MO_CA_BUNDLE. */
#define MO_CA_DIR    "/run/ca-certificates"

struct mo_ca_file {
    const char *source; /* MO_CA_BUNDLE or MO_CA_JAVA */
    const char *path;   /* in the box, absolute */
};
extern const struct mo_ca_file mo_ca_files[MO_CA_FILES];

/* "NAME=" MO_CA_PATH: of OpenSSL, Node, Python's requests and pip, curl, git.
 * NULL-terminated. */
#define MO_CA_VARIABLES 6
extern const char *const mo_ca_env[MO_CA_VARIABLES + 1];

#endif
