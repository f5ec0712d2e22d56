/* access.h - how to reach a cluster: kubeconfig or service account.
 *
 * mo_kube_access_read() reads the text of a kubeconfig (YAML as kubectl writes
 * it, or JSON) and takes one context of it. mo_kube_access_inside() takes the
 * service account of the pod that this program runs in.
 *
 * Refused, with the reason: insecure-skip-tls-verify, http:// addresses,
 * proxy-url, auth-provider (removed from Kubernetes), basic authentication, and
 * impersonation.
 *
 * Ownership: the texts live in the access; mo_kube_access_fini() wipes them. No
 * I/O but mo_kube_access_open(), which reads files. Limits: MO_KUBE_CONFIG_MAX,
 * MO_KUBE_WORDS_MAX words of a plugin's command. */
#ifndef MO_KUBE_ACCESS_H
#define MO_KUBE_ACCESS_H

#include "base/mem.h"
#include "base/str.h"

#define MO_KUBE_CONFIG_MAX ((size_t)1024 * 1024)
#define MO_KUBE_WORDS_MAX  64
#define MO_KUBE_NAME_MAX   64 /* bytes of a DNS label, NUL included */

struct mo_kube_access {
    struct mo_arena arena;
    const char *server;      /* "https://host:port" without a path */
    const char *server_name; /* in its certificate; NULL: that of server */
    /* Each of these is PEM text, a path, or (both NULL) absent. */
    const char *ca, *ca_file;
    const char *cert, *cert_file;
    const char *key, *key_file;
    const char *token, *token_file;
    const char *const *exec;     /* plugin's command, NULL-terminated; NULL:
                                    there is none */
    const char *const *exec_env; /* "K=V", added to ours */
    const char *exec_api;        /* its apiVersion */
    const char *ns;              /* namespace; never NULL */
    const char *what;            /* "context c of /root/.kube/config" */
};

void mo_kube_access_fini(struct mo_kube_access *a);

/* text: of the file at `path`; relative paths in it are relative to its
 * directory. context NULL or "": the current one. */
int mo_kube_access_read(struct mo_span text, const char *path,
                        const char *context, struct mo_kube_access *out,
                        struct mo_err *e);

/* host and port as the kubelet sets them; dir has token, ca.crt, namespace. */
int mo_kube_access_inside(const char *host, const char *port, const char *dir,
                          struct mo_kube_access *out, struct mo_err *e);

/* path NULL or "": $KUBECONFIG; else, in a pod, its service account; else
 * ~/.kube/config. */
int mo_kube_access_open(const char *path, const char *context,
                        struct mo_kube_access *out, struct mo_err *e);

/* True for a DNS label, as names of namespaces are. */
bool mo_kube_is_label(struct mo_span s);

#endif
