/* merge.h - one JSON answer of several, by rules.
 *
 * Each worker answers for itself; the rules of a document say how its members
 * become those of the whole. A member without a rule is taken from the base:
 * of objects about a server the one with the latest outcome ("lastCheck"),
 * preferably one that is not "cold"; otherwise the first.
 *
 * Pure: knows no requests. The texts were written by our own workers. */
#ifndef MO_WEB_MERGE_H
#define MO_WEB_MERGE_H

#include "codec/json/json.h"

#define MO_MERGE_MAX  64   /* answers */
#define MO_MERGE_ROWS 1024 /* of a list; further ones are left out */

enum mo_merge_op {
    MO_MERGE_SUM,
    MO_MERGE_LATEST,    /* the largest number */
    MO_MERGE_FIRST,     /* the smallest number */
    MO_MERGE_EACH_SUM,  /* arrays of numbers: of each place */
    MO_MERGE_EACH_MOST, /* the largest of each place */
    MO_MERGE_EACH_MEAN, /* the mean of each place, weighted with array `by` */
    MO_MERGE_JOIN,      /* arrays: one after the other */
    MO_MERGE_BY,        /* arrays of objects: those that agree in the members
                         * `by`, `and` and `also` become one, by the rules
                         * `in` */
    MO_MERGE_IN,        /* objects, by the rules `in` */
    MO_MERGE_PUT,       /* put() writes the value, of the objects it is in */
    MO_MERGE_HIDE,      /* it is only there to be merged */
};

struct mo_merge_rule {
    const char *key; /* NULL: the end of the rules */
    enum mo_merge_op op;
    const char *by, *and, *also;
    const struct mo_merge_rule *in;
    const char *order; /* MO_MERGE_BY: the largest of this member first, */
    size_t most;       /* and at most so many of them; 0: all */
    void (*put)(struct mo_jw *w, const struct mo_json *v, size_t n);
};

/* Writes the object that n objects become; n is at least 1. */
void mo_merge(struct mo_jw *w, const struct mo_json *v, size_t n,
              const struct mo_merge_rule *rules);

/* The object whose members stand for those of all, without a rule. */
struct mo_json mo_merge_base(const struct mo_json *v, size_t n);
/* The sum of that member of all objects. */
uint64_t mo_merge_sum(const struct mo_json *v, size_t n, const char *key);

#endif
