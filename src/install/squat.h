/* squat.h - does a name pretend to be another one?
 *
 * A package of npm or PyPI is compared with a list of servers that many people
 * use: the same last part in another scope, or a few letters of difference. A
 * name of the registry begins with a namespace that its publisher has proven;
 * for io.github.OWNER the repository should belong to that owner. Pure. */
#ifndef MO_INSTALL_SQUAT_H
#define MO_INSTALL_SQUAT_H

#include "base/str.h"

/* The well-known package that this name resembles, or NULL. is_pypi: a
 * normalised name of PyPI, else one of npm. */
const char *mo_squat_resembles(struct mo_span package, bool is_pypi);

/* False if the namespace is io.github.OWNER and the address of the repository
 * is not one of that owner. */
bool mo_squat_is_owner(struct mo_span registry_name, struct mo_span repository);

#endif
