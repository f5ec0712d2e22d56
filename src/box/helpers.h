/* helpers.h - the two small programs that this one carries with it.
 *
 * mo-toolbox runs inside boxes, mo-box makes native ones. Their bytes are in
 * the binary (scripts/embed), so there is nothing to find and nothing that
 * could be of another version. */
#ifndef MO_BOX_HELPERS_H
#define MO_BOX_HELPERS_H

#include "base/str.h"

extern const char mo_helper_toolbox[], mo_helper_toolbox_end[];
extern const char mo_helper_launcher[], mo_helper_launcher_end[];

static inline struct mo_span mo_helper_toolbox_bytes(void)
{
    return mo_span(mo_helper_toolbox,
                   (size_t)(mo_helper_toolbox_end - mo_helper_toolbox));
}

static inline struct mo_span mo_helper_launcher_bytes(void)
{
    return mo_span(mo_helper_launcher,
                   (size_t)(mo_helper_launcher_end - mo_helper_launcher));
}

#endif
