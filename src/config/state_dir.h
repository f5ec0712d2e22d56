/* state_dir.h - the default of store.dir, for all commands.
 *
 *   $XDG_STATE_HOME/mcp-orchestrator         if the variable is set
 *   $HOME/.local/state/mcp-orchestrator      else
 *   /var/lib/mcp-orchestrator/state          for root in root's own home, or
 *                                            without HOME
 *
 * The third is a directory of a user of its own, to which the server then
 * changes (app/own_user.h). It is used if it exists, or if the command may make
 * it (`serve`, `secrets set`, `config allow`); but never if root's home has
 * state from earlier. So the first command decides, and all later ones find the
 * same place. */
#ifndef MO_CONFIG_STATE_DIR_H
#define MO_CONFIG_STATE_DIR_H

#include <limits.h>
#include <stdbool.h>

#define MO_STATE_DIR_SYSTEM "/var/lib/mcp-orchestrator"
#define MO_STATE_DIR_STATE  MO_STATE_DIR_SYSTEM "/state"
#define MO_STATE_DIR_HOME   MO_STATE_DIR_SYSTEM "/home"

struct mo_state_dir_facts {
    bool is_root;
    bool makes_system_dir;  /* the command may make it */
    const char *xdg, *home; /* the variables; NULL: not set */
    const char *roots_home; /* home directory of root */
    bool has_home_state;    /* home/.local/state/mcp-orchestrator exists */
    bool has_system_state;  /* MO_STATE_DIR_STATE exists */
};

void mo_state_dir_choose(const struct mo_state_dir_facts *f,
                         char out[PATH_MAX]);
/* The same with the facts of this process. */
void mo_state_dir_default(char *const *env, bool makes_system_dir,
                          char out[PATH_MAX]);

#endif
