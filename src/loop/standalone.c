#include "loop/standalone.h"

#ifdef MO_STATIC

#    include <nss.h>
#    include <stdlib.h>
#    include <string.h>
#    include <unistd.h>

#    include "codec/ca_files.h"

void mo_standalone_init(void)
{
    static const char *const users[] = {"passwd", "group", "services"};

    (void)__nss_configure_lookup("hosts", "files dns");
    for (size_t i = 0; i < sizeof(users) / sizeof(*users); i++)
        (void)__nss_configure_lookup(users[i], "files");
}

const char *mo_standalone_ca(void)
{
    const char *named = getenv("SSL_CERT_FILE");

    if (named && *named)
        return named;
    for (size_t i = 0; i < MO_CA_FILES; i++) {
        const struct mo_ca_file *f = &mo_ca_files[i];

        if (strcmp(f->source, MO_CA_BUNDLE) == 0 &&
            strcmp(f->path, MO_CA_PATH) != 0 && access(f->path, R_OK) == 0)
            return f->path;
    }
    return NULL;
}

#else

#    include <stddef.h>

void mo_standalone_init(void)
{
}

const char *mo_standalone_ca(void)
{
    return NULL;
}

#endif
