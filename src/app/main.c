/* main.c - the door. Everything behind it is in cli.h. */
#include <unistd.h>

#include "app/cli.h"

int main(int argc, char **argv)
{
    return mo_cli_main(argc, argv, environ);
}
