/* Frames of a network container: valid ones in pieces, every kind of invalid
 * one, and a stream that is joined in the middle. */
#include "codec/net_frame.h"

#include <stdio.h>

#include "base/mem.h"
#include "mo_test.h"

#define MAX ((size_t)1024 * 1024)

static const unsigned char nonce[MO_NET_NONCE] = "0123456789abcdef";

/* What was read, as text. */
static void show(struct mo_buf *b, const struct mo_net_frame *f)
{
    char text[MO_IP_TEXT] = "";

    if (f->type == MO_NET_OPEN)
        mo_ip_text(&f->ip, text);
    if (f->type == MO_NET_OPEN)
        mo_buf_printf(b, "open %u %s %u;", f->id, text, f->port);
    else if (f->type == MO_NET_CREDIT)
        mo_buf_printf(b, "credit %u %u;", f->id, f->credit);
    else if (f->type == MO_NET_HELLO)
        mo_buf_printf(b, "hello %.*s %u;", (int)f->data.n, f->data.p, f->flags);
    else
        mo_buf_printf(b, "%d %u %zu;", f->type, f->id, f->data.n);
}

static void read_all(struct mo_net_frames *p, struct mo_span in, size_t step,
                     struct mo_buf *out)
{
    while (in.n) {
        struct mo_span piece = mo_span_head(in, step < in.n ? step : in.n);
        struct mo_net_frame f;
        int rc = 1;

        in = mo_span_skip(in, piece.n);
        while (rc) {
            rc = mo_net_frames_next(p, &piece, &f);
            if (rc == 1)
                show(out, &f);
            else if (rc < 0)
                mo_buf_puts(out, "bad;");
        }
        assert_int_equal(piece.n, 0);
    }
}

static void check_text(const struct mo_buf *in, bool container,
                       const char *want)
{
    static const size_t steps[] = {1, 2, 7, 8, 9, 10, 4096, MAX};

    assert_int_equal(mo_buf_err(in), 0);
    for (size_t i = 0; i < MO_COUNT(steps); i++) {
        struct mo_net_frames *p = mo_new(struct mo_net_frames);
        mo_autobuf struct mo_buf out = {.max = MAX};

        mo_net_frames_init(p, container);
        read_all(p, mo_buf_view(in), steps[i], &out);
        assert_string_equal(mo_buf_cstr(&out), want);
        mo_free(p);
    }
}

static void put_bytes(struct mo_buf *b, size_t n, enum mo_net_type type,
                      uint32_t id)
{
    static char data[MO_NET_DATA_MAX];

    (void)mo_net_put(b, type, id, mo_span(data, n));
}

static void all_types(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MAX};
    struct mo_ip ip;

    (void)state;
    assert_true(mo_ip_parse(MO_SPAN("198.18.0.1"), &ip));
    mo_net_put_hello(&b, nonce, 1);
    mo_net_put_open(&b, 1, &ip, 443);
    put_bytes(&b, 1, MO_NET_DATA, 1);
    put_bytes(&b, MO_NET_DATA_MAX, MO_NET_DATA, 0x01020304);
    mo_net_put_credit(&b, 1, MO_NET_WINDOW);
    put_bytes(&b, 0, MO_NET_EOF, 1);
    put_bytes(&b, 0, MO_NET_RESET, 1);
    put_bytes(&b, 30, MO_NET_QUERY, 9);
    check_text(&b, true,
               "hello 0123456789abcdef 1;open 1 198.18.0.1 443;3 1 1;"
               "3 16909060 16384;credit 1 65536;5 1 0;6 1 0;7 9 30;");
    mo_buf_reset(&b);
    mo_net_put_hello(&b, nonce, 0);
    put_bytes(&b, 30, MO_NET_ANSWER, 9);
    mo_net_put_file(&b, MO_NET_FILE_JAVA, true, MO_SPAN("file"));
    check_text(&b, false, "hello 0123456789abcdef 0;8 9 30;9 2 4;");
}

static void invalid_frames(void **state)
{
    static const struct {
        const char *name;
        struct mo_span bytes;
    } rows[] = {
        {"type 0", MO_SPAN("\x00")},
        {"type 10", MO_SPAN("\x0a")},
        {"type 255", MO_SPAN("\xff")},
        {"a second hello", MO_SPAN("\x01")},
        {"of the relay only", MO_SPAN("\x08")},
        {"not 0", MO_SPAN("\x03\x01")},
        {"no data", MO_SPAN("\x03\x00\x00\x00")},
        {"too much data", MO_SPAN("\x03\x00\x40\x01")},
        {"a short open", MO_SPAN("\x02\x00\x00\x11")},
        {"a long credit", MO_SPAN("\x04\x00\x00\x05")},
        {"eof with data", MO_SPAN("\x05\x00\x00\x01")},
        {"reset with data", MO_SPAN("\x06\x00\x01\x00")},
        {"id 0", MO_SPAN("\x05\x00\x00\x00\x00\x00\x00\x00")},
        {"id 255", MO_SPAN("\x05\x00\x00\x00\x00\x00\x00\xff")},
        {"last byte", MO_SPAN("\x05\x00\x00\x00\x00\x00\x00\x01\x01")},
        {"credit 0", MO_SPAN("\x04\x00\x00\x04\x00\x00\x00\x01\0\0\0\0\0")},
        {"credit above", MO_SPAN("\x04\x00\x00\x04\x00\x00\x00\x01\0\1\0\1\0")},
        {"file 3", MO_SPAN("\x09\x00\x00\x01\x00\x00\x00\x03\0\0")},
        {"file 1, 2", MO_SPAN("\x09\x00\x00\x01\x00\x00\x00\x01\2\0")},
        {"port 0", MO_SPAN("\x02\x00\x00\x12\x00\x00\x00\x01"
                           "0123456789abcdef\0\0\0")},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = MAX};

        mo_net_put_hello(&b, nonce, 0);
        mo_buf_span(&b, rows[i].bytes);
        put_bytes(&b, 5, MO_NET_DATA, 1); /* dropped */
        mo_net_put_hello(&b, nonce, 2);
        put_bytes(&b, 6, MO_NET_DATA, 1);
        check_text(&b, true,
                   "hello 0123456789abcdef 0;bad;hello 0123456789abcdef 2;"
                   "3 1 6;");
        check_row(rows[i].name, true);
    }
}

/* A process died within any byte of any frame; the next one greets. */
static void cut_anywhere(void **state)
{
    mo_autobuf struct mo_buf all = {.max = MAX};
    mo_autobuf struct mo_buf b = {.max = MAX};
    size_t before;

    (void)state;
    mo_net_put_hello(&all, nonce, 0);
    before = all.len;
    put_bytes(&all, 300, MO_NET_DATA, 0x00010203);
    mo_net_put_credit(&all, 0x7f000000, 77);
    put_bytes(&all, 0, MO_NET_EOF, 5);
    put_bytes(&all, 3, MO_NET_ANSWER, 0x00ff00fe);
    for (size_t cut = before; cut <= all.len; cut++) {
        struct mo_net_frames *p = mo_new(struct mo_net_frames);
        mo_autobuf struct mo_buf out = {.max = MAX};

        mo_buf_reset(&b);
        mo_buf_put(&b, all.p, cut);
        mo_net_put_hello(&b, nonce, 7);
        put_bytes(&b, 2, MO_NET_DATA, 4);
        mo_net_frames_init(p, false);
        read_all(p, mo_buf_view(&b), 50, &out);
        assert_non_null(
            strstr(mo_buf_cstr(&out), "bad;hello 0123456789abcdef 7;3 4 2;"));
        /* no frame was completed with other bytes */
        assert_int_equal(strstr(mo_buf_cstr(&out), "3 66051 300;") != NULL,
                         cut >= before + MO_NET_HEAD + 301);
        mo_free(p);
    }
}

/* A reader that begins in the middle finds the hello, whatever came before. */
static void joined_in_the_middle(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MAX};
    char row[MO_NET_ROW];

    (void)state;
    memset(row, 0xff, sizeof(row));
    mo_buf_put(&b, "data", 4);
    mo_buf_put(&b, row, sizeof(row));
    mo_buf_put(&b, "\x01\0\0\x11\0\0\0\0fake fa", 15); /* a hello that is cut */
    mo_net_put_hello(&b, nonce, 1);
    check_text(&b, true, "hello 0123456789abcdef 1;");
    mo_buf_reset(&b);
    mo_buf_put(&b, row, sizeof(row) - 1); /* too short a row */
    put_bytes(&b, 17, MO_NET_DATA, 1);
    mo_buf_put(&b, row, sizeof(row));
    put_bytes(&b, 17, MO_NET_DATA, 1);
    check_text(&b, true, "");
}

static void a_hello_can_be_refused(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MAX};
    struct mo_net_frames *p = mo_new(struct mo_net_frames);
    struct mo_net_frame f;
    struct mo_span in;

    (void)state;
    mo_net_put_hello(&b, nonce, 0);
    put_bytes(&b, 17, MO_NET_DATA, 1);
    mo_net_put_hello(&b, nonce, 1);
    mo_net_frames_init(p, true);
    in = mo_buf_view(&b);
    assert_int_equal(mo_net_frames_next(p, &in, &f), 1);
    mo_net_frames_refuse(p);
    assert_int_equal(mo_net_frames_next(p, &in, &f), 1);
    assert_int_equal(f.type, MO_NET_HELLO);
    assert_int_equal(f.flags, 1);
    mo_free(p);
}

static void ids(void **state)
{
    (void)state;
    assert_int_equal(mo_net_next_id(0), 1);
    assert_int_equal(mo_net_next_id(0xfe), 0x100);
    assert_int_equal(mo_net_next_id(0xfffffffe), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_types),
        cmocka_unit_test(invalid_frames),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(joined_in_the_middle),
        cmocka_unit_test(a_hello_can_be_refused),
        cmocka_unit_test(ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
