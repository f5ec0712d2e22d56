#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Append ": more", truncated to the buffer; nothing if more is empty. */
static void append_text(struct mo_err *e, const char *more)
{
    size_t n = strlen(e->msg);

    if (*more)
        (void)snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", more);
}

int mo_vfail(struct mo_err *e, int code, int sys, const char *why,
             const char *fmt, va_list ap)
{
    if (!e)
        return code;
    e->code = code;
    e->sys = sys;
    (void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
    append_text(e, why ? why : "");
    return code;
}

int mo_fail(struct mo_err *e, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)mo_vfail(e, code, 0, NULL, fmt, ap);
    va_end(ap);
    return code;
}

const struct mo_err *mo_error_in(struct mo_err *e, int code, const char *fmt,
                                 ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)mo_vfail(e, code, 0, NULL, fmt, ap);
    va_end(ap);
    return e;
}

/* Not strerror(): it shares a buffer between threads. */
static const char *sys_text(int sys, char *room, size_t n)
{
#ifdef __GLIBC__
    return strerror_r(sys, room, n);
#else /* POSIX version: musl, in the static programs */
    return strerror_r(sys, room, n) == 0 ? room : "unknown error";
#endif
}

int mo_fail_sys(struct mo_err *e, const char *fmt, ...)
{
    int sys = errno;
    char text[64];
    va_list ap;

    va_start(ap, fmt);
    (void)mo_vfail(e, MO_EIO, sys, sys_text(sys, text, sizeof(text)), fmt, ap);
    va_end(ap);
    return MO_EIO;
}

int mo_wrap(struct mo_err *e, const char *fmt, ...)
{
    char old[sizeof(e->msg)];
    va_list ap;

    if (!e)
        return MO_EIO;
    if (!e->code)
        e->code = MO_EIO;
    memcpy(old, e->msg, sizeof(old));
    va_start(ap, fmt);
    (void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
    va_end(ap);
    append_text(e, old);
    return e->code;
}

void mo_err_clear(struct mo_err *e)
{
    if (!e)
        return;
    e->code = 0;
    e->sys = 0;
    e->msg[0] = '\0';
}

const char *mo_err_name(int code)
{
    static const char *const names[] = {
        [-MO_EIO] = "io",
        [-MO_ENOMEM] = "no_memory",
        [-MO_ETOOBIG] = "too_big",
        [-MO_EPROTO] = "protocol",
        [-MO_EINVAL] = "invalid",
        [-MO_ENOTFOUND] = "not_found",
        [-MO_EEXISTS] = "exists",
        [-MO_ETIMEOUT] = "timeout",
        [-MO_ECANCELED] = "canceled",
        [-MO_ECLOSED] = "closed",
        [-MO_EBUSY] = "busy",
        [-MO_EPOLICY] = "policy",
        [-MO_EUNAVAIL] = "unavailable",
        [-MO_ETLS] = "tls",
        [-MO_EPATH] = "path",
    };

    if (code == 0)
        return "ok";
    if (code > 0 || code <= -(int)(sizeof(names) / sizeof(names[0])))
        return "unknown";
    return names[-code];
}

void mo_bug(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "BUG at %s:%d: %s\n", file, line, what);
    abort();
}
