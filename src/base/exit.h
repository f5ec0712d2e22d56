/* exit.h - the exit codes of the program, the same for every command. */
#ifndef MO_BASE_EXIT_H
#define MO_BASE_EXIT_H

enum mo_exit_code {
    MO_EXIT_OK = 0,
    MO_EXIT_FAIL = 1,    /* it was tried and did not work */
    MO_EXIT_USAGE = 2,   /* the command line is wrong */
    MO_EXIT_CONFIG = 3,  /* the configuration is wrong */
    MO_EXIT_UNAVAIL = 4, /* something needed does not answer or is taken */
    MO_EXIT_SIGN_IN = 5, /* a person must sign in at the server first */
};

#endif
