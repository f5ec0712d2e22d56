/* main.c - mo-box, the launcher and keeper of native boxes.
 *
 *   mo-box             start and keep the box requested on stdin, which is a
 *                      unix socket
 *   mo-box --sweep DIR remove what killed keepers left behind
 *   mo-box --owner UID:GID ...  either of them, for another user (owner.h)
 *   mo-box --hold ...  in a pod: the init of its program (hold.h)
 *   mo-box --relay PORTS [FILES]  in a pod: its network (pod_net.h)
 *   mo-box --pause     in a pod: keeps a container running
 *   mo-box --network PORTS DIR [FILES]  in a container: the network of a docker
 *                      box (container_net.h); DIR "-": over stdin and stdout
 *
 * A separate small static program, so the orchestrator never forks privileged
 * code and this one is short enough to review. Order of events:
 *
 *   main      leaves its parent's session and descriptors
 *   keeper    reads the request; takes a user id (slot), creates the socket,
 *             the cgroups with their limits (cgroup, hier), then the box's
 *             root in a mount namespace, and moves there (view); and its
 *             network, if it is to have one (net)
 *   run       clones the box into its namespaces and cgroups
 *   confine   in the box: gives up all privileges, filters system calls
 *   run       in the box: process 1 starts the program and reaps
 *   keeper    answers with the program's pipes, stays with the box
 *
 * A step that fails ends everything with a typed refusal and its reason. A
 * guaranteed limit that cannot be set is such a failure. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "launcher/container_net.h"
#include "launcher/hold.h"
#include "launcher/keeper.h"
#include "launcher/kernel.h"
#include "launcher/pod_net.h"
#include "launcher/sweep.h"

#define REQUEST_FD 3 /* descriptor of the request in the keeper */

static int print_usage(void)
{
    fprintf(stderr, "usage: mo-box [--owner UID:GID] (with a request on a "
                    "socket as stdin)\n"
                    "       mo-box [--owner UID:GID] --sweep DIR\n"
                    "       mo-box --network PORTS DIR [FILES]\n");
    return 2;
}

static int sweep_dir(const char *dir, const struct mo_owner *owner)
{
    struct mo_err e;
    unsigned n;

    if (mo_sweep(dir, owner, &n, &e) < 0) {
        fprintf(stderr, "mo-box: %s\n", e.msg);
        return 1;
    }
    printf("%u\n", n);
    return 0;
}

/* Leave parent, session and all descriptors but the request. Returns its
 * descriptor, or -1. */
static int detach_process(void)
{
    int null;
    pid_t pid = fork();

    if (pid != 0)
        _exit(pid < 0);
    if (dup2(STDIN_FILENO, REQUEST_FD) < 0)
        return -1;
    fcntl(REQUEST_FD, F_SETFD, FD_CLOEXEC);
    k_close_range(REQUEST_FD + 1, ~0u);
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return -1;
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    close(null);
    umask(077);
    setsid(); /* fails only if we lead a session already */
    return chdir("/") < 0 ? -1 : REQUEST_FD;
}

int main(int argc, char **argv)
{
    const char *whose = NULL;
    struct mo_owner owner;
    int type, request;
    socklen_t n = sizeof(type);

    if (argc > 1 && strcmp(argv[1], "--hold") == 0)
        return mo_hold(argc - 2, argv + 2);
    if ((argc == 3 || argc == 4) && strcmp(argv[1], "--relay") == 0)
        return mo_pod_net(argv[2], argv[3]);
    if (argc == 2 && strcmp(argv[1], "--pause") == 0)
        return mo_pod_pause();
    if ((argc == 4 || argc == 5) && strcmp(argv[1], "--network") == 0)
        return mo_container_net(argv[2], argv[3], argv[4]);
    if (argc >= 3 && strcmp(argv[1], "--owner") == 0) {
        whose = argv[2];
        argc -= 2;
        argv += 2;
    }
    if (mo_owner_init(&owner, whose) < 0)
        return print_usage();
    if (argc == 3 && strcmp(argv[1], "--sweep") == 0)
        return sweep_dir(argv[2], &owner);
    if (argc != 1 ||
        getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &n) < 0)
        return print_usage();
    prctl(PR_SET_NAME, "mo-box"); /* the name is wrong if run from memory */
    request = detach_process();
    return request < 0 ? 1 : mo_keeper(request, &owner);
}
