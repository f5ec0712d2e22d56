#include "base/passwd.h"

#include <stdio.h>

#include "base/file.h"
#include "base/mem.h"

#define FILE_MAX ((size_t)1024 * 1024)

static bool keep_text(char *out, size_t room, struct mo_span s)
{
    int n = snprintf(out, room, "%.*s", (int)s.n, s.p ? s.p : "");

    return n >= 0 && (size_t)n < room;
}

/* "name:password:uid:gid:comment:home:shell" */
static bool read_row(struct mo_span row, struct mo_passwd *out)
{
    struct mo_span name = mo_span_cut(&row, ':'), uid_text, gid_text;
    uint64_t uid, gid;

    (void)mo_span_cut(&row, ':');
    uid_text = mo_span_cut(&row, ':');
    gid_text = mo_span_cut(&row, ':');
    (void)mo_span_cut(&row, ':');
    if (!row.p || mo_span_u64(uid_text, &uid) < 0 || uid >= (uid_t)-1 ||
        mo_span_u64(gid_text, &gid) < 0 || gid >= (gid_t)-1)
        return false;
    out->uid = (uid_t)uid;
    out->gid = (gid_t)gid;
    return name.n && keep_text(out->name, sizeof(out->name), name) &&
           keep_text(out->home, sizeof(out->home), mo_span_cut(&row, ':'));
}

bool mo_passwd_find(struct mo_span text, const char *name, uid_t uid,
                    struct mo_passwd *out)
{
    while (text.p && text.n) {
        if (!read_row(mo_span_cut(&text, '\n'), out))
            continue;
        if (name ? strcmp(out->name, name) == 0 : out->uid == uid)
            return true;
    }
    return false;
}

bool mo_passwd_get(const char *name, uid_t uid, struct mo_passwd *out)
{
    mo_autobuf struct mo_buf text = {.max = FILE_MAX};

    return mo_file_read(MO_PASSWD_FILE, FILE_MAX, &text, NULL, NULL) == 0 &&
           mo_passwd_find(mo_buf_view(&text), name, uid, out);
}
