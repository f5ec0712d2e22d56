/* script.h - run_script: a script that may call the peer's tools.
 *
 * A script is a job like a command, with three differences. Its code lies in a
 * directory made for this run, beside files that the peer sends in
 * _meta["mcp-orchestrator/script"]; a channel (channel.h) carries its calls;
 * and nothing survives it: when it ends, everything it started is killed.
 *
 * The interpreter is found in PATH when the toolbox starts. It runs with the
 * box's own rights; the box confines it.
 *
 * Limits: FILES_MAX files of FILES_BYTES together. */
#ifndef TB_SCRIPT_H
#define TB_SCRIPT_H

#include <limits.h>

#include "toolbox/channel.h"
#include "toolbox/server.h"

/* A run: its directory and its channel. */
struct tb_script {
    char dir[NAME_MAX + 1];     /* "": removed */
    struct tb_channel *channel; /* NULL: without tools */
};

/* A bit for each language whose interpreter is there. */
unsigned tb_script_languages(void);

/* Answers of the peer; ctx: struct tb_box. */
extern const struct tb_method tb_script_methods[];

/* For job.c. All of them accept NULL. */
void tb_script_close(struct tb_script *s); /* its channel */
/* Remove some of its files; true when none is left. */
bool tb_script_clean(struct tb_script *s);
void tb_script_free(struct tb_script *s);
uint64_t tb_script_calls(const struct tb_script *s);
/* Nanoseconds in which it waited for calls. */
uint64_t tb_script_held(const struct tb_script *s);
/* Its mistake that ended the channel, or NULL. */
const char *tb_script_fault(const struct tb_script *s);

#endif
