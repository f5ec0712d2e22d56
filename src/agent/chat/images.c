/* images.c - see images.h. */
#include "agent/chat/images.h"

#include "agent/chat/chat_priv.h"
#include "agent/chat/turn.h"
#include "codec/picture.h"
#include "codec/text/base64.h"

#define HEAD          "Attached files:\n"
#define FOLDER        "uploads/"
#define SMALLER       "uploads/.view/"
#define PART          ((size_t)192 * 1024) /* bytes; base64 needs no padding */
#define READ_MS       30000                /* for the box to answer */
#define PATH_MAX_TEXT ((size_t)1024)
#define REST          ((size_t)64 * 1024) /* of the entry, beside text and images */

struct images {
    struct mo_span list; /* paths that are left; of the message */
    struct mo_span path; /* the present one */
    struct mo_buf name;  /* the file that is read for it */
    struct mo_buf bytes, blocks;
    uint64_t size, mtime;
    size_t room; /* bytes of blocks */
    unsigned n;
    bool smaller, stopped;
    struct mo_call *call;
};

/* --- the list of a message ----------------------------------------------- */

/* True if every line names a file. */
static bool is_list(struct mo_span s)
{
    while (s.n > 0) {
        struct mo_span line = mo_span_cut(&s, '\n');

        if (!mo_span_starts(line, MO_SPAN("- " FOLDER)))
            return false;
    }
    return true;
}

struct mo_span mo_chat_images_list(struct mo_span text)
{
    static const struct mo_span head = {HEAD, sizeof(HEAD) - 1};

    for (size_t i = text.n; i >= head.n; i--) {
        size_t at = i - head.n;
        struct mo_span rest = mo_span_skip(text, i);

        if ((at == 0 || text.p[at - 1] == '\n') &&
            mo_span_eq(mo_span_head(mo_span_skip(text, at), head.n), head))
            return is_list(rest) ? rest : mo_span(NULL, 0);
    }
    return mo_span(NULL, 0);
}

struct mo_span mo_chat_images_next(struct mo_span *list)
{
    struct mo_span line = {NULL, 0};

    if (list->n > 0)
        line = mo_span_cut(list, '\n');
    return line.n > 2 ? mo_span_skip(line, 2) : mo_span(NULL, 0);
}

/* --- blocks -------------------------------------------------------------- */

static struct mo_jw begin_block(struct images *v)
{
    struct mo_jw w;

    if (v->blocks.len > 0)
        mo_buf_putc(&v->blocks, ',');
    w = mo_jw_object(&v->blocks);
    mo_jw_member(&w, "type", MO_SPAN("image"));
    mo_jw_member(&w, "path", v->path);
    mo_jw_member_u64(&w, "size", v->size);
    v->n++;
    return w;
}

static void put_left(struct images *v, const char *why)
{
    struct mo_jw w = begin_block(v);

    mo_jw_member_cstr(&w, "left", why);
    mo_jw_end(&w);
}

static void put_image(struct images *v, const struct mo_picture *image)
{
    mo_autobuf struct mo_buf text = {.max = MO_STORE_DOC_MAX};
    struct mo_jw w;

    (void)mo_base64_put(&text, mo_buf_view(&v->bytes));
    if (mo_buf_err(&text))
        return;
    w = begin_block(v);
    mo_jw_member_cstr(&w, "mimeType", image->type);
    mo_jw_member(&w, "data", mo_buf_view(&text));
    mo_jw_end(&w);
}

/* --- reading ------------------------------------------------------------- */

static void read_next(struct chat *c);
static void read_part(struct chat *c);

static void finish(struct chat *c)
{
    if (c->state != CHAT_ENDING)
        mo_turn_said(c);
    mo_chat_settle(c);
}

static bool has_room(const struct images *v)
{
    return v->blocks.len + (v->size + 2) / 3 * 4 + PATH_MAX_TEXT < v->room;
}

/* Reads the copy that the page made smaller; false: that was it. */
static bool read_smaller(struct chat *c)
{
    struct images *v = c->turn.images;

    if (v->smaller)
        return false;
    v->smaller = true;
    mo_buf_reset(&v->name);
    mo_buf_reset(&v->bytes);
    mo_buf_puts(&v->name, SMALLER);
    mo_buf_span(&v->name, mo_span_skip(v->path, sizeof(FOLDER) - 1));
    read_part(c);
    return true;
}

/* The whole file is here. */
static void take_file(struct chat *c, const struct mo_picture *image)
{
    struct images *v = c->turn.images;

    if (image->width > MO_CHAT_IMAGE_SIDE ||
        image->height > MO_CHAT_IMAGE_SIDE) {
        if (read_smaller(c))
            return;
        put_left(v, "too_big");
    } else {
        put_image(v, image);
    }
    read_next(c);
}

/* A part is here, appended to the bytes. */
static void take_part(struct chat *c, size_t before)
{
    struct images *v = c->turn.images;
    struct mo_picture image;

    if (mo_picture_read(mo_buf_view(&v->bytes), &image) < 0) {
        read_next(c); /* some other file */
    } else if (!has_room(v)) {
        if (read_smaller(c))
            return;
        put_left(v, "too_big");
        read_next(c);
    } else if (v->bytes.len >= v->size) {
        take_file(c, &image);
    } else if (v->bytes.len == before) {
        put_left(v, "changed");
        read_next(c);
    } else {
        read_part(c);
    }
}

/* Bytes of an answer; MO_EPROTO: the file has changed meanwhile. */
static int take_bytes(struct images *v, struct mo_json r)
{
    mo_autobuf struct mo_buf text = {.max = 2 * PART};
    uint64_t size = 0, mtime = 0;

    if (mo_json_u64(mo_json_get(r, "size"), &size) < 0 ||
        mo_json_u64(mo_json_get(r, "mtime"), &mtime) < 0 ||
        mo_json_str_buf(mo_json_get(r, "content"), &text) < 0)
        return MO_EPROTO;
    if (v->bytes.len > 0 && (size != v->size || mtime != v->mtime))
        return MO_EPROTO;
    v->size = size;
    v->mtime = mtime;
    return mo_base64_decode(mo_buf_view(&text), &v->bytes);
}

/* It cannot be read. */
static void skip_file(struct chat *c)
{
    if (c->turn.images->smaller)
        put_left(c->turn.images, "too_big");
    read_next(c);
}

static void on_part(void *ctx, const struct mo_reply *r)
{
    struct chat *c = ctx;
    struct images *v = c->turn.images;
    size_t before = v->bytes.len;

    v->call = NULL;
    c->writes--;
    if (v->stopped || c->state == CHAT_ENDING)
        finish(c);
    else if (r->result.p && take_bytes(v, r->result) == 0)
        take_part(c, before);
    else
        skip_file(c);
}

static int send_read(struct chat *c, struct mo_err *e)
{
    struct images *v = c->turn.images;
    const struct mo_call_opts o = {
        .idle_ms = READ_MS, .hard_ms = READ_MS, .done = on_part, .ctx = c};
    mo_autobuf struct mo_buf b = {.max = 8 * PATH_MAX_TEXT};
    struct mo_jw w = mo_jw_object(&b);

    mo_jw_member_obj(&w, "arguments");
    mo_jw_member(&w, "path", mo_buf_view(&v->name));
    mo_jw_member_u64(&w, "offset", v->bytes.len);
    mo_jw_member_u64(&w, "length", PART);
    mo_jw_end_all(&w);
    if (mo_buf_err(&b) || mo_buf_err(&v->name) || c->info.conn == NULL)
        return mo_fail(e, MO_EUNAVAIL, "the file cannot be read");
    v->call =
        mo_conn_request(c->info.conn, "mo/files/read", mo_buf_view(&b), &o, e);
    return v->call ? 0 : e->code;
}

static void read_part(struct chat *c)
{
    struct mo_err e;

    if (send_read(c, &e) < 0)
        finish(c); /* the box is gone, and the other files with it */
    else
        c->writes++;
}

/* Goes on with the next path. */
static void read_next(struct chat *c)
{
    struct images *v = c->turn.images;

    v->path = mo_chat_images_next(&v->list);
    if (v->path.p == NULL || v->n >= MO_CHAT_IMAGES || v->stopped) {
        finish(c);
        return;
    }
    v->smaller = false;
    v->size = 0;
    mo_buf_reset(&v->bytes);
    mo_buf_reset(&v->name);
    mo_buf_span(&v->name, v->path);
    read_part(c);
}

static void on_box(void *ctx, const struct mo_session_info *info,
                   const struct mo_err *why)
{
    struct chat *c = ctx;

    c->writes--;
    if (info && info->conn)
        c->info.conn = info->conn;
    if (why || c->turn.images->stopped || c->state == CHAT_ENDING)
        finish(c);
    else
        read_next(c);
}

/* --- start and end ------------------------------------------------------- */

static struct images *images_new(struct mo_span list, size_t text)
{
    struct images *v = mo_new(struct images);

    if (v == NULL)
        return NULL;
    v->list = list;
    v->room = MO_STORE_DOC_MAX - REST;
    v->room -= 6 * text < v->room ? 6 * text : v->room; /* escaped */
    mo_buf_init(&v->name, PATH_MAX_TEXT);
    mo_buf_init(&v->bytes, MO_STORE_DOC_MAX);
    mo_buf_init(&v->blocks, MO_STORE_DOC_MAX);
    return v;
}

bool mo_chat_images_start(struct chat *c, struct mo_span text)
{
    struct mo_span list = mo_chat_images_list(text);
    struct mo_err e;

    mo_chat_images_free(c);
    if (list.n == 0 || c->hold == NULL)
        return false;
    c->turn.images = images_new(list, text.n);
    if (c->turn.images == NULL || mo_session_use(c->hold, on_box, c, &e) < 0)
        return false;
    c->writes++;
    return true;
}

void mo_chat_images_stop(struct chat *c)
{
    struct images *v = c->turn.images;

    if (v == NULL)
        return;
    v->stopped = true;
    if (v->call)
        mo_call_cancel(v->call, NULL);
}

struct mo_span mo_chat_images_blocks(const struct chat *c)
{
    const struct images *v = c->turn.images;

    return v && mo_buf_err(&v->blocks) == 0 ? mo_buf_view(&v->blocks)
                                            : mo_span(NULL, 0);
}

void mo_chat_images_free(struct chat *c)
{
    struct images *v = c->turn.images;

    if (v == NULL)
        return;
    c->turn.images = NULL;
    mo_buf_fini(&v->name);
    mo_buf_fini(&v->bytes);
    mo_buf_fini(&v->blocks);
    mo_free(v);
}
