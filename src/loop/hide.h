/* hide.h - what a child process cannot reach.
 *
 * A program that runs as our user could read every file that we can. A child
 * with a struct mo_hide gets a mount namespace in which the given directories
 * are empty and read-only, sockets in them included, and the given files can be
 * read but not changed or replaced. One directory directly in a hidden one can
 * stay visible, read-only. Directories above them that our user could
 * rename are mounted onto themselves, because a mount point cannot be renamed:
 * else the child would put a directory of its own in place.
 *
 *   with CAP_SYS_ADMIN   a mount namespace
 *   without              a mount namespace in a user namespace in which only
 *                        our user exists, under its own number
 *   Landlock             a domain for each child: it cannot trace or inspect
 *                        (/proc/PID/environ, mem, fd) any process outside, and
 *                        since ABI 6 sends no signals there
 *   capabilities         those with which root would undo this are dropped
 *
 * A kernel that refuses namespaces starts the child without them and sets
 * `refused`. A lack of resources is an error: otherwise a child could use them
 * up to make the next one see more.
 *
 * Does not hold: a file that somebody else replaces is no longer protected from
 * the children that run; a child can ask another program of the same user (a
 * service manager, an engine, cron) to act for it, and root can read a raw
 * disk. */
#ifndef MO_LOOP_HIDE_H
#define MO_LOOP_HIDE_H

#include <limits.h>
#include <stddef.h>

#include "base/err.h"

#define MO_HIDE_MAX  4  /* directories and files */
#define MO_HIDE_PINS 16 /* directories above each of them */

struct mo_hide {
    char path[MO_HIDE_MAX][PATH_MAX]; /* absolute, without links */
    bool is_file[MO_HIDE_MAX];        /* read-only; else hidden */
    unsigned n;
    char shown[PATH_MAX]; /* stays visible, read-only; "": none */
    int refused;          /* errno of the last start without namespaces, or 0 */
};

/* Adds an existing directory. MO_ENOTFOUND, MO_EIO; MO_EINVAL if we work in it:
 * a child that inherits our working directory could not be kept out. */
int mo_hide_add(struct mo_hide *h, const char *dir, struct mo_err *e);

/* Adds a file that the child cannot change. MO_ENOTFOUND, MO_EIO, MO_EINVAL. */
int mo_hide_keep(struct mo_hide *h, const char *file, struct mo_err *e);

/* Keeps a directory that lies in the one added last visible, read-only. It need
 * not exist yet: every start looks for it. name: without a slash. */
void mo_hide_show(struct mo_hide *h, const char *name);

/* True if the path is one of the directories or in one, and not in the visible
 * one. It is compared as it is written. */
bool mo_hide_has(const struct mo_hide *h, const char *path);

/* Tries it: 0 if the kernel allows the namespaces, or an errno. Blocks for less
 * than a millisecond. */
int mo_hide_try(const struct mo_hide *h);

/* --- for spawn.c ---------------------------------------------------------- */

/* A child that execs never returns from these frames, so AddressSanitizer's red
 * zones would stay poisoned in our shadow memory. */
#define MO_CHILD_SIDE                                                          \
    __attribute__((no_sanitize("address"), no_sanitize("thread"),              \
                   no_sanitize("undefined")))

struct mo_hide_plan {
    const struct mo_hide *h; /* NULL: hide nothing */
    bool spaces;             /* with namespaces */
    bool users;              /* also a user namespace */
    int domain;              /* Landlock rules, or -1 */
    int dumpable;            /* ours */
    char uids[32], gids[32];
    char cwd[PATH_MAX]; /* ours; entered again through the new mounts */
    char at[PATH_MAX];  /* for the child */
    unsigned short pins[MO_HIDE_MAX][MO_HIDE_PINS]; /* lengths, 0: end */
};

void mo_hide_plan(struct mo_hide_plan *p, const struct mo_hide *h);
void mo_hide_plan_fini(struct mo_hide_plan *p);

/* In the child, in our memory: only system calls. They return 0 or an errno.
 * mo_hide_enter() makes the namespaces and leaves the working directory in
 * them; mo_hide_confine() comes after the last call that needs privileges. */
int mo_hide_enter(struct mo_hide_plan *p);
int mo_hide_confine(const struct mo_hide_plan *p);

/* True if the kernel does not allow namespaces, as opposed to a lack of
 * resources. */
bool mo_hide_is_refusal(int err);

#endif
