#include "launcher/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rand.h"

#define SLOT_FILE "/run/mo-box.slots"

static bool lock_byte(int fd, unsigned at)
{
    struct flock l = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &l) == 0;
}

int mo_slot_take(uid_t *uid, int *fd, struct mo_err *e)
{
    mo_autofd int file = -1;
    unsigned from = (unsigned)(mo_random_u64() % MO_SLOT_MAX);

    *uid = MO_SLOT_FIRST_UID;
    *fd = -1;
    if (geteuid() != 0)
        return 0;
    file = open(SLOT_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return mo_fail_sys(e, "%s", SLOT_FILE);
    for (unsigned i = 0; i < MO_SLOT_MAX; i++) {
        unsigned at = (from + i) % MO_SLOT_MAX;

        if (!lock_byte(file, at))
            continue;
        *uid = MO_SLOT_FIRST_UID + at;
        *fd = mo_take_fd(&file);
        return 0;
    }
    return mo_fail(e, MO_EBUSY, "all %d user ids for boxes are in use",
                   MO_SLOT_MAX);
}
