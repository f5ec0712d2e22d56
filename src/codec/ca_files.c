#include "codec/ca_files.h"

#include <stddef.h>

const struct mo_ca_file mo_ca_files[MO_CA_FILES] = {
    {MO_CA_BUNDLE, MO_CA_PATH},
    {MO_CA_BUNDLE, "/etc/ssl/certs/ca-certificates.crt"},
    {MO_CA_BUNDLE, "/etc/ssl/ca-bundle.pem"},
    {MO_CA_BUNDLE, "/etc/ssl/cert.pem"},
    {MO_CA_BUNDLE, "/etc/pki/tls/certs/ca-bundle.crt"},
    {MO_CA_BUNDLE, "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"},
    {MO_CA_JAVA, "/etc/ssl/certs/java/cacerts"},
};

const char *const mo_ca_env[MO_CA_VARIABLES + 1] = {
    "SSL_CERT_FILE=" MO_CA_PATH,
    "NODE_EXTRA_CA_CERTS=" MO_CA_PATH,
    "REQUESTS_CA_BUNDLE=" MO_CA_PATH,
    "CURL_CA_BUNDLE=" MO_CA_PATH,
    "GIT_SSL_CAINFO=" MO_CA_PATH,
    "PIP_CERT=" MO_CA_PATH,
    NULL,
};
