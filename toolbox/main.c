/* main.c - the command line of mo-toolbox. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "toolbox/network_check.h"
#include "toolbox/serve.h"

static const char help[] =
    "usage: mo-toolbox [--root DIR] [--stay]\n"
    "       mo-toolbox --check-network PORT CLOSED_PORT\n"
    "\n"
    "An MCP server for the files and commands of one directory, over stdin\n"
    "and stdout. It speaks every protocol revision since 2024-11-05.\n"
    "\n"
    "  --root DIR  the directory it works in and cannot leave; /workspace\n"
    "  --stay      do not end when stdin does: a client may come again\n"
    "  --check-network  try the network of this box, for `doctor --sandbox`\n"
    "  --help      this text\n"
    "  --version   the version\n"
    "\n"
    "Tools: read_file write_file edit_file list_files search_files\n"
    "execute_command run_script\n";

/* A closed descriptor 0 to 2 would be reused for a command's pipe. */
static int check_stdio(struct mo_err *e)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            return mo_fail_sys(e, "descriptor %d must be open", fd);
    }
    return 0;
}

static int print_text(const char *text)
{
    size_t n = strlen(text);

    return write(1, text, n) == (ssize_t)n ? 0 : 1;
}

static int fail_usage(const char *what)
{
    (void)fprintf(stderr, "mo-toolbox: %s; see --help\n", what);
    return 2;
}

int main(int argc, char **argv)
{
    struct tb_serve_opts o = {.root = "/workspace"};
    struct mo_err e = {0};

    if (argc == 4 && strcmp(argv[1], "--check-network") == 0)
        return tb_network_check(argv[2], argv[3]);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return print_text(help);
        if (strcmp(argv[i], "--version") == 0)
            return print_text("mo-toolbox " MO_VERSION "\n");
        if (strcmp(argv[i], "--stay") == 0)
            o.stay = true;
        else if (strcmp(argv[i], "--root") == 0 && i + 1 < argc)
            o.root = argv[++i];
        else
            return fail_usage("unknown or incomplete argument");
    }
    if (check_stdio(&e) == 0 && tb_serve(&o, &e) == 0)
        return 0;
    (void)fprintf(stderr, "mo-toolbox: %s\n", e.msg);
    return 1;
}
