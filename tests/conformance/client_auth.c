/* client_auth.c - the scenarios of authorization. */
#include "conformance/client.h"

int auth_scenario(struct driver *d, const char *name)
{
    (void)d;
    (void)name;
    return NO_SUCH_SCENARIO;
}
