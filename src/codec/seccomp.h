/* seccomp.h - which system calls a box may make: one table, two forms.
 *
 * An allow-list. Other calls fail with EPERM; clone3 and calls newer than the
 * table fail with ENOSYS, because libraries then fall back to the older
 * call. A few calls are allowed for some arguments only: clone without new
 * namespaces, socket for AF_UNIX, ioctl for a list of requests (TIOCSTI is not
 * among them), sched_setscheduler for policies that take no time from others,
 * chmod and the creation of files without setuid and setgid bits. openat2 has
 * its mode in memory, which no filter can see, so it is left out where programs
 * of others can call it.
 *
 * mo_seccomp_bpf() writes it as the classic BPF program that the kernel takes,
 * mo_seccomp_json() as the profile that container engines take. Both come from
 * the same rows, so the boxes of both drivers behave alike.
 *
 * Arguments are compared by their low 32 bits, which is all the kernel looks
 * at for these calls: a filter that compares 64 bits can be passed by setting
 * a bit above (CVE-2019-10063).
 *
 * Numbers stand in the table for both machines: nothing depends on the one
 * this was compiled on. A program of a foreign architecture, 32-bit or x32 on
 * amd64, is killed. */
#ifndef MO_CODEC_SECCOMP_H
#define MO_CODEC_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>

#include "base/str.h"

enum mo_seccomp_arch { MO_SECCOMP_ARM64, MO_SECCOMP_AMD64, MO_SECCOMP_ARCHES };

#if defined(__aarch64__)
#    define MO_SECCOMP_HERE MO_SECCOMP_ARM64
#elif defined(__x86_64__)
#    define MO_SECCOMP_HERE MO_SECCOMP_AMD64
#else
#    error "no system call numbers for this machine"
#endif

#define MO_SECCOMP_NONE     (-1) /* this machine has no such call */
#define MO_SECCOMP_NR_MAX   449  /* the newest call the table knows of */
#define MO_SECCOMP_BPF_MAX  512  /* instructions */
#define MO_SECCOMP_JSON_MAX ((size_t)32 * 1024)

struct mo_seccomp_call {
    const char *name;
    short nr[MO_SECCOMP_ARCHES];
};

/* Allowed when (argument & mask) == value. A call with several rows is
 * allowed when one of them holds. */
struct mo_seccomp_rule {
    struct mo_seccomp_call call;
    unsigned arg;
    uint32_t mask, value;
};

/* The rows, for writers and tests. */
const struct mo_seccomp_call *mo_seccomp_calls(size_t *n);
const struct mo_seccomp_rule *mo_seccomp_rules(size_t *n);
extern const struct mo_seccomp_call mo_seccomp_clone3;

#define MO_SECCOMP_NETWORK 1u /* sockets of TCP and UDP, too */
#define MO_SECCOMP_OPENAT2 2u /* openat2, too; else ENOSYS */

/* The number of instructions written to out, at most MO_SECCOMP_BPF_MAX. */
size_t mo_seccomp_bpf(enum mo_seccomp_arch arch, unsigned flags,
                      struct sock_filter out[MO_SECCOMP_BPF_MAX]);

/* The profile as one JSON object, for the "seccomp=" of SecurityOpt. network:
 * as above. */
int mo_seccomp_json(bool network, struct mo_buf *out);

/* Arguments of socket() that a box with a network may use beside AF_UNIX: every
 * combination of these. */
#define MO_SECCOMP_TYPE_MASK 15u /* without SOCK_CLOEXEC and SOCK_NONBLOCK */
extern const uint32_t mo_seccomp_inet_families[2], mo_seccomp_inet_types[2],
    mo_seccomp_inet_protocols[3];

#endif
