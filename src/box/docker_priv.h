/* docker_priv.h - what the files of the docker driver share.
 *
 * docker.c keeps the engine: greeted when first needed and again after it was
 * away, our image in it, its news. docker_box.c is the life of one box,
 * docker_end.c its end, docker_ctr.c what it is asked to be. docker_ask.c
 * answers about all of them.
 *
 * Invariants:
 *  1. Only mo_docker_move() writes a box's step.
 *  2. A box waits for at most one answer of the engine (`call`), and while it
 *     is being made for its attach beside it (`attaching`).
 *  3. `made`: a container of ours may exist, under `id` or, when the answer
 *     to create never came, under `name`. Whoever ends the box sees to it. */
#ifndef MO_BOX_DOCKER_PRIV_H
#define MO_BOX_DOCKER_PRIV_H

#include "box/driver.h"
#include "engine/ctr.h"
#include "engine/engine.h"
#include "engine/image.h"
#include "engine/watch.h"
#include "loop/split.h"

#define DK_SLOTS      MO_BOX_MAX
#define DK_NAME_MAX   32
#define DK_CLEAN_MAX  256 /* images of others remembered as harmless */
#define DK_ARENA_MAX  ((size_t)512 * 1024)
#define DK_LABELS     6
#define DK_SLOT_TRIES 32

/* Waits until the engine was greeted (and has our image); go() once. */
struct dk_wait {
    struct mo_list node;
    void (*go)(struct dk_wait *w, const struct mo_err *why);
    bool image; /* ours is needed too */
};

struct dk {
    struct mo_boxes bs; /* first */
    struct mo_engine *en;
    struct mo_watch *watch;
    struct mo_engine_facts facts;
    char *store, *instance, *dir;
    struct mo_span toolbox;
    struct mo_image_tar image; /* tar is empty once it is known to be there */
    struct mo_buf seccomp;     /* the profile, or (podman) its path */
    bool greeted, greeting, image_ok, image_asked;
    struct mo_list waiting;
    struct mo_later later;
    struct mo_map *clean; /* ids of images that were looked through */
    bool slots[DK_SLOTS];
    void (*gone)(void *ctx);
    void *gone_ctx;
};

enum dk_step {
    DK_WAITING,  /* for the engine, for our image */
    DK_LOOKING,  /* at somebody else's image */
    DK_CREATING, /* create */
    DK_CHECKING, /* inspect and attach */
    DK_STARTING, /* start */
    DK_UP,
    DK_JUDGING,  /* something ended: inspect says what */
    DK_FINDING,  /* was it made or not? */
    DK_REMOVING, /* remove */
    DK_DONE,     /* mo_box_down() is next */
};

struct dk_box {
    struct mo_box b; /* first */
    enum dk_step step;
    struct dk_wait wait;
    struct mo_arena arena; /* the spec's texts, what it becomes */
    struct mo_box_spec spec;
    struct mo_image *image; /* somebody else's; NULL: ours */
    struct mo_ctr ctr;
    struct mo_engine_call *call, *attaching;
    struct mo_split_io io; /* split: NULL once it has ended */
    struct mo_timer timer; /* the next try */
    struct mo_later later; /* go on from the loop */
    struct mo_err why;     /* code 0: none */
    struct mo_box_end end;
    char id[MO_BOX_ID_MAX], name[DK_NAME_MAX];
    int slot; /* -1: none */
    unsigned tries, looks;
    bool adopted, warm, made, stopping, letting_go, has_end;
    bool streams_ours; /* io's streams have not been given away */
    bool eof, broken;  /* the attach has ended; in nonsense */
};

static inline struct dk *mo_docker_of(const struct mo_boxes *bs)
{
    return mo_container_of(bs, struct dk, bs);
}

static inline struct dk_box *mo_docker_box_of(const struct mo_box *b)
{
    return mo_container_of(b, struct dk_box, b);
}

/* A member that is true. */
static inline bool mo_docker_flag(struct mo_json obj, const char *key)
{
    bool v = false;

    (void)mo_json_bool(mo_json_get(obj, key), &v);
    return v;
}

/* docker.c */
void mo_docker_wait(struct dk *d, struct dk_wait *w); /* go() from the loop */
void mo_docker_unwait(struct dk_wait *w);             /* no go() any more */
/* MO_EPOLICY if the engine cannot keep a promise. */
int mo_docker_judge(const struct dk *d, const struct mo_engine_facts *f,
                    struct mo_err *e);

/* docker_ctr.c: fill b->ctr from b->spec; slot and image are known. */
int mo_docker_ctr_fill(struct dk *d, struct dk_box *b, struct mo_err *e);

/* docker_box.c */
int mo_docker_box_start(struct mo_box *b, const struct mo_box_spec *spec,
                        bool warm, struct mo_err *e);
int mo_docker_box_adopt(struct mo_box *b, const char *id, struct mo_err *e);
void mo_docker_box_stop(struct mo_box *b);
void mo_docker_box_let_go(struct mo_box *b);
void mo_docker_box_park(struct mo_box *b);
void mo_docker_box_claim(struct mo_box *b, const struct mo_box_spec *spec);
void mo_docker_move(struct dk_box *b, enum dk_step to);
/* "/containers/" what tail; its answer's call is b->call. */
int mo_docker_ask(struct dk_box *b, const char *method, const char *what,
                  const char *tail, struct mo_span body, mo_engine_done *done,
                  struct mo_err *e);
void mo_docker_retry(struct dk_box *b, void (*fire)(struct mo_timer *t),
                     uint64_t ms);

/* docker_end.c */
/* News of the engine: that container ended, or nobody knows (all). */
void mo_docker_box_news(struct dk_box *b);
void mo_docker_box_later(struct mo_later *l); /* looks at the news, at a stop */
void mo_docker_box_cut(void *ctx, enum mo_split_end how,
                       const struct mo_err *why);
/* It does not come to life: because of that, or because it was stopped. */
void mo_docker_give_up(struct dk_box *b, const struct mo_err *why);
/* Leave nothing behind, then say so. */
void mo_docker_wind_up(struct dk_box *b);

/* docker_ask.c */
int mo_docker_stats(struct mo_box *b,
                    void (*done)(void *ctx, const struct mo_box_stats *s,
                                 const struct mo_err *why),
                    void *ctx, struct mo_err *e);
int mo_docker_list(struct mo_boxes *bs,
                   void (*done)(void *ctx, const struct mo_box_row *v, size_t n,
                                const struct mo_err *why),
                   void *ctx, struct mo_err *e);
int mo_docker_remove(struct mo_boxes *bs, const char *id,
                     void (*done)(void *ctx, const struct mo_err *why),
                     void *ctx, struct mo_err *e);
int mo_docker_check(struct mo_boxes *bs,
                    void (*done)(void *ctx, const struct mo_boxes_ready *r),
                    void *ctx, struct mo_err *e);

#endif
