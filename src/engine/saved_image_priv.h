/* saved_image_priv.h - the files of an archive of `docker save`.
 *
 * saved_image.c reads the archive and notes what it finds in each file;
 * saved_image_judge.c reads the documents and judges. */
#ifndef MO_ENGINE_SAVED_IMAGE_PRIV_H
#define MO_ENGINE_SAVED_IMAGE_PRIV_H

#include "base/map.h"
#include "codec/tar.h"
#include "engine/saved_image.h"

#define FILES_MAX    ((size_t)4096)
#define LINKS_MAX    ((size_t)1 << 17)
#define DOCUMENT_MAX ((size_t)1024 * 1024)     /* of one document */
#define TEXTS_MAX    ((size_t)8 * 1024 * 1024) /* of all that may be one */
#define TRAIL_MAX    ((size_t)64 * 1024 * 1024)

/* One file of the archive. */
struct saved_file {
    struct mo_buf text; /* its bytes, if it may be a document */
    bool no_text;       /* it is none, or too long */
    bool is_layer;      /* read to its end as a tar */
    bool is_walked;     /* a document whose layers have been marked */
    bool odd_type;      /* a manifest gives it a media type that we refuse */
    char first[6];      /* bytes, nfirst of them */
    size_t nfirst;
    char target[256];  /* a link to this file of the archive, or "" */
    struct mo_err why; /* code 0: nothing was found in it */
    size_t from, to;   /* its part of the trail */
};

struct mo_saved_image {
    const struct mo_image *im;
    struct mo_tar outer, inner;
    struct mo_map files;     /* by clean path; struct saved_file */
    struct saved_file *file; /* that is being read, or NULL */
    size_t texts;            /* bytes of documents */
    unsigned ca_links;       /* bit i: a link is at or above mo_ca_files[i] */
    unsigned ca_seen;        /* bit i: that is a file */
    bool inner_ended;
    struct mo_buf path;
    /* For each layer, in its order: 'l' for a link, 'd' for a directory, 'w'
     * for a directory that an entry is in; then the path and a NUL. */
    struct mo_buf trail;
};

/* MO_EPOLICY: "image: /PATH what". */
int mo_saved_image_refuse(struct mo_span path, const char *what,
                          struct mo_err *e);

#endif
