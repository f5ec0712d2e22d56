/* file.h - small files of the kernel: one number or a few lines each.
 *
 * Read and written whole, relative to a directory that is open. A file that
 * does not fit is cut, which none of those read here does. 0 or -1 and errno,
 * as the kernel. */
#ifndef MO_LAUNCHER_FILE_H
#define MO_LAUNCHER_FILE_H

#include "base/str.h"

int mo_file_write(int dir, const char *name, const char *text);
int mo_file_read(int dir, const char *name, char *out, size_t size); /* NUL */
void mo_file_nap(unsigned ms);

/* The number behind `key` and a blank at the start of a line; with key ""
 * the file's only number. 0 when it is not there. */
uint64_t mo_file_key(struct mo_span text, const char *key);

#endif
