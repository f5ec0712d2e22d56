/* audit_anchor.h - copies of the last row's number and MAC outside of the
 * directory of the log, where its writer cannot take them back.
 *
 *   2026-11-15T12:18:17.618Z mcp-orchestrator-audit host=H log=DIR seq=12
 * mac=HEX
 *
 * An anchor is "syslog", or "file:PATH": a file that is only appended to, best
 * on another machine's mount or with chattr +a. A line is written every 1000
 * rows, once a minute while rows are written, at a rotation and at the end. */
#ifndef MO_AUDIT_AUDIT_ANCHOR_H
#define MO_AUDIT_AUDIT_ANCHOR_H

#include "audit/audit_file.h"

#define MO_AUDIT_ANCHOR_FILE "file:"

/* Blocks. 0, or -1: it could not be written. */
int mo_audit_anchor_put(const char *anchor, const char *dir,
                        const struct mo_audit_witness *w);

/* Reads the lines about that log from a text file, also from an export of
 * syslog: in order of seq, at most MO_AUDIT_ANCHOR_MAX, the newest ones. The
 * caller frees *out. */
#define MO_AUDIT_ANCHOR_MAX ((size_t)100000)
int mo_audit_anchor_read(const char *path, const char *dir,
                         struct mo_audit_witness **out, size_t *n,
                         struct mo_err *e);

#endif
