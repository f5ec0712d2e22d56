/* main.c - the door. Everything behind it is in cli.h; the guardian of child
 * processes is this same program under another name (guard.h). */
#include <unistd.h>

#include "app/cli.h"
#include "loop/guard.h"

int main(int argc, char **argv)
{
    if (mo_guard_wanted(argc, argv))
        mo_guard_main();
    return mo_cli_main(argc, argv, environ);
}
