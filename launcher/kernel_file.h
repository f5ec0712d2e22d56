/* kernel_file.h - small files of the kernel: one number or a few lines each.
 *
 * Read and written whole, relative to an open directory. Longer files are
 * truncated; none of those read here is that long. Returns 0, or -1 and
 * errno. */
#ifndef MO_LAUNCHER_KERNEL_FILE_H
#define MO_LAUNCHER_KERNEL_FILE_H

#include "base/str.h"

int mo_kernel_file_write(int dir, const char *name, const char *text);
/* out is NUL-terminated. */
int mo_kernel_file_read(int dir, const char *name, char *out, size_t size);
void mo_sleep_ms(unsigned ms);

/* The number after `key` and a blank at the start of a line; with key "" the
 * file's only number. 0 if missing. */
uint64_t mo_kernel_file_key(struct mo_span text, const char *key);

#endif
