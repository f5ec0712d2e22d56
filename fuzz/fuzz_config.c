/* Configuration files, .env files and references, by the first byte.
 *
 * Beyond not crashing: nothing is refused without a word, and what is shown
 * of a good configuration is JSON. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "config/doc.h"
#include "config/read.h"
#include "config/reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(const struct mo_config *c)
{
    struct mo_json_doc doc;
    struct mo_err e = {0};
    struct mo_buf b;

    mo_buf_init(&b, 64 << 20);
    mo_config_show_json(c, true, &b);
    if (mo_buf_err(&b) == 0 && mo_json_parse(mo_buf_view(&b), 0, &doc, &e) < 0)
        abort();
    mo_buf_reset(&b);
    mo_config_show(c, true, &b);
    mo_buf_fini(&b);
}

static void feed_config(struct mo_span text)
{
    struct mo_config_report rep = {.kept = 0};
    struct mo_config cfg = {.generation = 1};
    struct mo_arena arena;
    struct mo_config_load l = {
        .cfg = &cfg, .arena = &arena, .rep = &rep, .file = "f", .text = text};
    int rc;

    mo_arena_init(&arena, MO_CONFIG_ARENA_MAX);
    mo_config_defaults(&l, &mo_config_keys, &cfg);
    rc = mo_config_read(&l, NULL);
    if (rc == 0)
        mo_config_check(&l);
    if (rc < 0 && rc != MO_ENOMEM && rep.errors == 0)
        abort(); /* refused without a word */
    if (rc == 0 && rep.errors == 0)
        show(&cfg);
    mo_arena_fini(&arena);
}

static void feed_env(struct mo_span text)
{
    struct mo_arena a;
    struct mo_dotenv env;
    unsigned line;

    mo_arena_init(&a, 1 << 20);
    if (mo_dotenv_parse(&a, text, &env, &line, NULL) == 0) {
        for (size_t i = 0; i < env.n; i++) {
            if (mo_dotenv_find(&env, env.v[i].name) != &env.v[i])
                abort();
        }
    }
    mo_arena_fini(&a);
}

static void feed_ref(struct mo_span text)
{
    struct mo_buf b;

    mo_buf_init(&b, 1 << 20);
    (void)mo_reference_mask(text, &b);
    if (mo_reference_check(text, NULL) < 0 && !mo_reference_any(text))
        abort();
    mo_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mo_span in = mo_span((const char *)data, size);

    if (size == 0 || size > (1 << 16))
        return 0;
    /* Plain files of each kind work as seeds. */
    if (in.p[0] == '#')
        feed_env(in);
    else if (in.p[0] == '$')
        feed_ref(in);
    else
        feed_config(in);
    return 0;
}
