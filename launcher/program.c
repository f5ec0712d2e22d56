#include "launcher/program.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "launcher/kernel_file.h"

#define SOCKETS_MAX   8192 /* of each family */
#define PROCESSES_MAX 1024
#define FDS_MAX       8192 /* of all processes together */
#define PIDS_BYTES    ((size_t)16 * 1024)
#define LINE_BYTES    256
#define ENDS_BYTES    80 /* two addresses with ports, in hexadecimal */
#define WORDS         4  /* of an IPv6 address */
#define INODE_WORD    9  /* of a line of /proc/net/tcp */
#define CUT           "..."

/* --- the socket ---------------------------------------------------------- */

/* An IPv4 address is the last word. */
static bool read_address(const char *text, uint32_t out[WORDS], bool *v4)
{
    *v4 = inet_pton(AF_INET, text, &out[WORDS - 1]) == 1;
    out[0] = out[1] = 0;
    out[2] = htonl(0xFFFF);
    return *v4 || inet_pton(AF_INET6, text, out) == 1;
}

/* As the kernel prints them: words as numbers of this machine. */
static int put_end(char *out, size_t n, const uint32_t *a, bool v4,
                   uint64_t port)
{
    return v4 ? snprintf(out, n, " %08X:%04X", a[WORDS - 1], (unsigned)port)
              : snprintf(out, n, " %08X%08X%08X%08X:%04X", a[0], a[1], a[2],
                         a[3], (unsigned)port);
}

static uint64_t read_inode(struct mo_span line)
{
    struct mo_span word = {0};
    uint64_t inode = 0;

    for (int i = 0; i <= INODE_WORD; i++) {
        while (line.n && *line.p == ' ')
            line = mo_span_skip(line, 1);
        word = mo_span_cut(&line, ' ');
    }
    return mo_span_u64(word, &inode) == 0 ? inode : 0;
}

/* The inode of the socket with these ends in the file; 0: none. */
static uint64_t search_sockets(int proc, const char *file, const char *ends)
{
    char line[LINE_BYTES];
    uint64_t inode = 0;
    int fd = openat(proc, file, O_RDONLY | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

    for (int i = 0; f && !inode && i < SOCKETS_MAX; i++) {
        if (!fgets(line, sizeof(line), f))
            break;
        if (strstr(line, ends))
            inode = read_inode(mo_span_cstr(line));
    }
    if (f)
        fclose(f);
    return inode;
}

static uint64_t find_socket(int proc, const struct mo_boxwho *w)
{
    uint32_t from[WORDS], to[WORDS];
    uint64_t inode = 0;
    bool v4, to_v4;

    if (!read_address(w->from, from, &v4) || !read_address(w->to, to, &to_v4) ||
        v4 != to_v4)
        return 0;
    /* a program may use an IPv6 socket for IPv4, too */
    for (int as_v4 = v4; !inode && as_v4 >= 0; as_v4--) {
        char ends[ENDS_BYTES];
        int n = put_end(ends, sizeof(ends), from, as_v4, w->from_port);

        (void)put_end(ends + n, sizeof(ends) - (size_t)n, to, as_v4,
                      w->to_port);
        inode = search_sockets(proc, as_v4 ? "self/net/tcp" : "self/net/tcp6",
                               ends);
    }
    return inode;
}

/* --- the process --------------------------------------------------------- */

/* *left: descriptors that may still be looked at. */
static bool has_open(int process, const char *socket, unsigned *left)
{
    int fds = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fds < 0 ? NULL : fdopendir(fds);
    bool found = false;

    while (d && !found && *left) {
        char to[LINE_BYTES];
        struct dirent *en = readdir(d);
        ssize_t n;

        if (!en)
            break;
        n = readlinkat(fds, en->d_name, to, sizeof(to) - 1);
        to[n < 0 ? 0 : n] = '\0';
        found = strcmp(to, socket) == 0;
        --*left;
    }
    if (d)
        closedir(d);
    return found;
}

static void put_path(int process, char out[MO_BOXREQ_TEXT_MAX + 1])
{
    char path[MO_BOXREQ_WORD_MAX];
    ssize_t n = readlinkat(process, "exe", path, sizeof(path));
    size_t all = n < 0 ? 0 : (size_t)n, cut = 0;

    if (all > MO_BOXREQ_TEXT_MAX) {
        cut = sizeof(CUT) - 1;
        memcpy(out, CUT, cut);
    }
    n = (ssize_t)(cut ? MO_BOXREQ_TEXT_MAX - cut : all);
    memcpy(out + cut, path + all - (size_t)n, (size_t)n);
    out[cut + (size_t)n] = '\0';
}

/* The directory stays that of one process, also if its number is reused. */
static int open_process(int proc, uint64_t pid)
{
    char name[MO_U64_DIGITS + 1];

    snprintf(name, sizeof(name), "%llu", (unsigned long long)pid);
    return openat(proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void search_processes(int proc, struct mo_span pids, const char *socket,
                             char *out)
{
    unsigned fds = FDS_MAX;
    struct mo_span line = mo_span_cut(&pids, '\n');

    /* not the last line: a truncated pid is another process */
    for (int i = 0; pids.p && fds && i < PROCESSES_MAX; i++) {
        mo_autofd int process = -1;
        uint64_t pid;

        if (mo_span_u64(line, &pid) == 0 && pid > 1)
            process = open_process(proc, pid);
        if (process >= 0 && has_open(process, socket, &fds)) {
            put_path(process, out);
            return;
        }
        line = mo_span_cut(&pids, '\n');
    }
}

void mo_program_find(int proc, const struct mo_cg *g, const struct mo_boxwho *w,
                     char out[MO_BOXREQ_TEXT_MAX + 1])
{
    char pids[PIDS_BYTES], socket[sizeof("socket:[]") + MO_U64_DIGITS];
    uint64_t inode = find_socket(proc, w);
    int dir = g->dir[g->dir[MO_CG_V2] >= 0 ? MO_CG_V2 : MO_CG_PIDS];

    out[0] = '\0';
    if (!inode || dir < 0 ||
        mo_kernel_file_read(dir, "cgroup.procs", pids, sizeof(pids)) < 0)
        return;
    snprintf(socket, sizeof(socket), "socket:[%llu]",
             (unsigned long long)inode);
    search_processes(proc, mo_span_cstr(pids), socket, out);
}
