#include "config/state_dir.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/passwd.h"
#include "config/config.h"

#define HOME_STATE "/.local/state/" MO_CONFIG_DIR

/* Slashes at the end do not count. */
static bool same_dir(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);

    while (n > 1 && a[n - 1] == '/')
        n--;
    while (m > 1 && b[m - 1] == '/')
        m--;
    return n == m && memcmp(a, b, n) == 0;
}

static bool is_system(const struct mo_state_dir_facts *f)
{
    if (!f->is_root || f->xdg || f->has_home_state)
        return false;
    if (f->home && !same_dir(f->home, f->roots_home))
        return false;
    return f->has_system_state || f->makes_system_dir;
}

void mo_state_dir_choose(const struct mo_state_dir_facts *f, char out[PATH_MAX])
{
    if (is_system(f))
        (void)snprintf(out, PATH_MAX, MO_STATE_DIR_STATE);
    else if (f->xdg)
        (void)snprintf(out, PATH_MAX, "%s/" MO_CONFIG_DIR, f->xdg);
    else
        (void)snprintf(out, PATH_MAX, "%s%s", f->home ? f->home : ".",
                       f->home ? HOME_STATE : "");
}

void mo_state_dir_default(char *const *env, bool makes_system_dir,
                          char out[PATH_MAX])
{
    struct mo_state_dir_facts f = {
        .is_root = geteuid() == 0,
        .makes_system_dir = makes_system_dir,
        .xdg = mo_config_find_env(env, "XDG_STATE_HOME"),
        .home = mo_config_find_env(env, "HOME"),
    };
    struct mo_passwd root;
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s" HOME_STATE, f.home ? f.home : "");
    f.roots_home = mo_passwd_get(NULL, 0, &root) ? root.home : "/root";
    f.has_home_state = f.home && access(path, F_OK) == 0;
    f.has_system_state = access(MO_STATE_DIR_STATE, F_OK) == 0;
    mo_state_dir_choose(&f, out);
}
