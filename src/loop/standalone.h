/* standalone.h - what shared libraries of the system know, for a static
 * program.
 *
 * Such a program runs on any distribution: it cannot load parts of another
 * libc, and its OpenSSL looks for certificates where Debian has them. In other
 * builds the libraries know, and these functions do nothing. */
#ifndef MO_LOOP_STANDALONE_H
#define MO_LOOP_STANDALONE_H

/* Names of hosts and users come from files and DNS: each other source that
 * /etc/nsswitch.conf may name is a shared library of the system's libc. Called
 * first in main(). */
void mo_standalone_init(void);

/* The file of trusted certificates, from $SSL_CERT_FILE or where distributions
 * have it; NULL if there is none, or the libraries know. */
const char *mo_standalone_ca(void);

#endif
