/* err.h - error codes and a fixed-size error message.
 *
 * A fallible call returns 0 or one of MO_E* (all negative). It fills the
 * caller's struct mo_err only when it fails. The message is built in place:
 * reporting a failure never allocates, so "out of memory" can be reported too.
 * Callers that add context wrap the error; the caller that handles it logs it,
 * once.
 *
 * Every function here accepts e == NULL for callers that only want the code. */
#ifndef MO_BASE_ERR_H
#define MO_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>

enum {
    MO_EIO = -1,       /* a system call failed; sys holds errno */
    MO_ENOMEM = -2,    /* allocation failed */
    MO_ETOOBIG = -3,   /* a named limit was reached */
    MO_EPROTO = -4,    /* the peer broke its protocol */
    MO_EINVAL = -5,    /* the caller or the user gave a bad value */
    MO_ENOTFOUND = -6, /* it does not exist */
    MO_EEXISTS = -7,   /* it exists already */
    MO_ETIMEOUT = -8,  /* a deadline passed */
    MO_ECANCELED = -9, /* the operation was cancelled */
    MO_ECLOSED = -10,  /* the peer closed the connection */
    MO_EBUSY = -11,    /* a bounded queue or table is full */
    MO_EPOLICY = -12,  /* a rule forbids it */
    MO_EUNAVAIL = -13, /* a required service does not answer */
    MO_ETLS = -14,     /* TLS failed */
    MO_EPATH = -15,    /* a path leaves its root directory */
};

struct mo_err {
    int code;      /* MO_E*, stable, may be shown to a peer */
    int sys;       /* errno at the failure, or 0 */
    char msg[240]; /* for the log, outermost context first */
};

/* How most operations of the event loop report their end; why NULL: success. */
typedef void mo_done_fn(void *ctx, const struct mo_err *why);

/* Fill *e and return code. sys stays 0. */
int mo_fail(struct mo_err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed system call: returns MO_EIO, stores errno, appends its
 * text. */
int mo_fail_sys(struct mo_err *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for a caller that has variable arguments and perhaps a reason (why,
 * or NULL) to append. Returns code. */
int mo_vfail(struct mo_err *e, int code, int sys, const char *why,
             const char *fmt, va_list ap) __attribute__((format(printf, 5, 0)));

/* Put context in front of the message. Returns e's code, MO_EIO if it has
 * none. */
int mo_wrap(struct mo_err *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* An error as an argument: end_call(k, mo_error(MO_EPROTO, "no result")). It
 * lives until the end of the statement, so its address must not be kept. */
#define mo_error(...) mo_error_in(&(struct mo_err){.code = 0}, __VA_ARGS__)
const struct mo_err *mo_error_in(struct mo_err *e, int code, const char *fmt,
                                 ...) __attribute__((format(printf, 3, 4)));

/* For a function that returns a pointer: return mo_null(mo_fail(e, ...)); */
#define mo_null(fail) ((void)(fail), NULL)

void mo_err_clear(struct mo_err *e);

/* Stable words for logs and problem+json, such as "timeout" or "protocol". */
const char *mo_err_name(int code);

/* Abort with file, line and condition. For bugs in this program only, never for
 * a peer's or a user's mistake. */
#define MO_BUG_ON(cond)                                                        \
    do {                                                                       \
        if (__builtin_expect(!!(cond), 0))                                     \
            mo_bug(__FILE__, __LINE__, #cond);                                 \
    } while (0)

/* For the one function that changes a state: legal[from] holds MO_TO() of each
 * state that may follow. */
#define MO_TO(s) (1u << (s))
#define MO_MOVE(state, to, legal)                                              \
    do {                                                                       \
        MO_BUG_ON(!((legal)[state] & MO_TO(to)));                              \
        (state) = (to);                                                        \
    } while (0)

void mo_bug(const char *file, int line, const char *what)
    __attribute__((noreturn, cold));

#endif
