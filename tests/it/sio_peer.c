/* sio_peer.c - codec/sio as a filter: a line of hex with one Socket.IO packet
 * in, a line with what it was decoded to as JSON out, or "error". Used by
 * sio_diff.test.mjs to hold it against npm's socket.io-parser. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/http/sio.h"

#define LINE_MAX_BYTES ((size_t)1 << 20)

static void print_packet(const struct mo_sio *s)
{
    struct mo_buf b;
    struct mo_jw w;

    mo_buf_init(&b, LINE_MAX_BYTES);
    mo_jw_init(&w, &b);
    mo_jw_obj(&w);
    mo_jw_key(&w, "type");
    mo_jw_u64(&w, s->type);
    mo_jw_key(&w, "nsp");
    mo_jw_str(&w, s->nsp);
    if (s->has_id) {
        mo_jw_key(&w, "id");
        mo_jw_u64(&w, s->id);
    }
    if (s->data.n) {
        mo_jw_key(&w, "data");
        mo_jw_raw(&w, mo_json_text(s->data));
    }
    mo_jw_end(&w);
    puts(mo_buf_cstr(&b));
    mo_buf_fini(&b);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

static void decode_line(struct mo_span hex)
{
    struct mo_sio s;
    struct mo_buf b;

    mo_buf_init(&b, LINE_MAX_BYTES);
    for (size_t i = 0; i + 1 < hex.n; i += 2)
        mo_buf_putc(&b, (char)(digit(hex.p[i]) << 4 | digit(hex.p[i + 1])));
    if (mo_sio_decode(mo_buf_view(&b), &s, NULL) == 0)
        print_packet(&s);
    else
        puts("error");
    (void)fflush(stdout);
    mo_buf_fini(&b);
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n = getline(&line, &cap, stdin);

    while (n > 0) {
        decode_line(mo_span(line, (size_t)n - (line[n - 1] == '\n')));
        n = getline(&line, &cap, stdin);
    }
    (free)(line); /* getline's, not ours */
    return 0;
}
