/* The file tools on a real directory, through the server, with every allocation
 * failing once: nothing may leak, no descriptor may stay open, and a failed
 * write leaves the old file. */
#include "mo_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "toolbox/box.h"
#include "toolbox/files.h"
#include "toolbox/server.h"

struct kit {
    struct tb_box box;
    struct tb_server server;
    char dir[64];
    struct mo_buf said;
    unsigned answers;
};

static void on_send(void *to, struct mo_span m)
{
    struct kit *k = to;

    k->answers++;
    (void)mo_buf_span(&k->said, m);
}

static int remove_one(const char *path, const struct stat *st, int flag,
                      struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

static int setup(void **state)
{
    struct kit *k = calloc(1, sizeof(*k));

    assert_non_null(k);
    memcpy(k->dir, "/tmp/mo-files-XXXXXX", 21);
    assert_non_null(mkdtemp(k->dir));
    assert_int_equal(tb_root_open(&k->box.root, k->dir, NULL), 0);
    tb_loop_init(&k->box.loop);
    tb_exec_init(&k->box.exec, &k->box.loop);
    mo_buf_init(&k->said, 1 << 20);
    *state = k;
    return 0;
}

static int teardown(void **state)
{
    struct kit *k = *state;

    tb_root_close(&k->box.root);
    mo_buf_fini(&k->said);
    assert_int_equal(nftw(k->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(k);
    return 0;
}

static unsigned open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

/* Run a call to its end; returns the message, or "" if there was no memory. */
static const char *call(struct kit *k, const char *tool, const char *args)
{
    bool is_tool = strncmp(tool, "mo/", 3) != 0;
    char line[1024];

    mo_buf_reset(&k->said);
    k->answers = 0;
    (void)snprintf(line, sizeof(line),
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\","
                   "\"params\":{\"name\":\"%s\",\"arguments\":%s}}",
                   is_tool ? "tools/call" : tool, tool, args);
    tb_server_line(&k->server, mo_span_cstr(line));
    while (k->server.ncalls)
        assert_int_equal(tb_loop_round(&k->box.loop, NULL), 0);
    assert_true(k->answers <= 1);
    return mo_buf_cstr(&k->said);
}

static void open_session(struct kit *k)
{
    k->server = (struct tb_server){.tools = tb_tools,
                                   .methods = tb_methods,
                                   .word = tb_files_word,
                                   .instructions = "",
                                   .ctx = &k->box,
                                   .send = on_send,
                                   .to = k};
    tb_server_init(&k->server);
    tb_server_line(&k->server,
                   MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":"
                           "\"initialize\",\"params\":{\"protocolVersion\":"
                           "\"2025-11-25\"}}"));
}

static const struct {
    const char *tool, *args, *want;
} rows[] = {
    {"write_file", "{\"path\":\"d/e/f.txt\",\"content\":\"one\\ntwo\\n\"}",
     "(8 bytes)"},
    {"write_file",
     "{\"path\":\"b\",\"content\":\"AAEC\",\"encoding\":\"base64\"}",
     "(3 bytes)"},
    {"read_file", "{\"path\":\"d/e/f.txt\",\"start_line\":2}",
     "\"content\":\"two\\n\""},
    {"read_file", "{\"path\":\"b\",\"encoding\":\"base64\"}",
     "\"content\":\"AAEC\""},
    {"edit_file",
     "{\"path\":\"d/e/f.txt\",\"old_string\":\"one\",\"new_string\":\"one\"}",
     "\"replacements\":1"},
    {"edit_file",
     "{\"path\":\"d/e/f.txt\",\"old_string\":\"o\",\"new_string\":\"x\"}",
     "2 times"},
    {"list_files", "{\"recursive\":true,\"glob\":\"*.txt\"}",
     "\"name\":\"d/e/f.txt\""},
    {"search_files", "{\"pattern\":\"TWO\",\"ignore_case\":true}",
     "\"line\":2"},
    {"search_files",
     "{\"pattern\":\"^t\\\\w+$\",\"regex\":true,\"context\":1,\"glob\":\"*\"}",
     "\"before\":[\"one\"]"},
    {"mo/files/list", "{\"recursive\":true,\"limit\":2}",
     "\"name\":\"d\",\"type\":\"directory\""},
    {"mo/files/list", "{\"recursive\":true,\"after\":\"d/e\"}",
     "\"entries\":[{\"name\":\"d/e/f.txt\",\"type\":\"file\",\"size\":8,"},
    {"mo/files/list", "{\"changed_ms\":0}", "\"entries\":["},
    {"mo/files/list", "{\"path\":\"b\"}", "\"mo.error\":\"not_directory\""},
    {"mo/files/read", "{\"path\":\"b\",\"offset\":1,\"length\":1}",
     "\"bytes\":1,\"content\":\"AQ==\""},
    {"mo/files/read", "{\"path\":\"d\"}", "\"mo.error\":\"is_directory\""},
    {"mo/files/read", "{\"path\":\"none\"}", "\"mo.error\":\"not_found\""},
    {"mo/files/read", "{\"path\":\"../x\"}", "\"mo.error\":\"path\""},
    {"mo/files/mkdir", "{\"path\":\"m/n\"}", "\"result\":{}"},
    {"mo/files/mkdir", "{\"path\":\"b\"}", "\"mo.error\":\"exists\""},
    {"mo/files/write", "{\"path\":\"m\",\"content\":\"\"}",
     "\"mo.error\":\"is_directory\""},
    {"mo/files/commit", "{\"path\":\"b\",\"temp\":\"b\"}",
     "\"mo.error\":\"invalid\""},
    {"mo/files/abort", "{\"path\":\"b\",\"temp\":\".mo-/aaaaaaaaaaa\"}",
     "\"mo.error\":\"invalid\""},
    {"mo/files/remove", "{\"path\":\".\"}", "\"mo.error\":\"path\""},
};

static void every_tool(void **state)
{
    struct kit *k = *state;

    open_session(k);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const char *got = call(k, rows[i].tool, rows[i].args);

        check_row(got, strstr(got, rows[i].want) != NULL);
    }
    tb_server_fini(&k->server);
}

struct trial {
    struct kit *k;
    size_t row;
};

static void one_trial(void *ctx)
{
    struct trial *t = ctx;
    struct kit *k = t->k;

    open_session(k);
    (void)call(k, rows[t->row].tool, rows[t->row].args);
    tb_server_fini(&k->server);
    mo_buf_fini(&k->said);
}

static void survive_no_memory(void **state)
{
    struct kit *k = *state;
    unsigned fds;

    every_tool(state);
    fds = open_fds();
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct trial t = {k, i};

        torture(one_trial, &t);
        check_row(rows[i].tool, open_fds() == fds);
    }
    open_session(k); /* no partial file, no temporary file */
    assert_non_null(strstr(call(k, "read_file", "{\"path\":\"d/e/f.txt\"}"),
                           "\"content\":\"one\\ntwo\\n\""));
    assert_null(strstr(call(k, "list_files", "{\"recursive\":true}"), ".mo-"));
    tb_server_fini(&k->server);
}

/* A tree with a file that was uploaded in two parts and a link that leads
 * outside; then it is removed. */
static void parts_of_a_file(void **state)
{
    struct kit *k = *state;
    unsigned fds = open_fds();
    char path[128], args[256], temp[64] = "";
    const char *got;

    open_session(k);
    got = call(k, "mo/files/write",
               "{\"path\":\"t/u.bin\",\"content\":\"AAEC\"}");
    got = strstr(got, ".mo-");
    assert_non_null(got);
    assert_int_equal(sscanf(got, "%63[^\"]", temp), 1);
    assert_null(strstr(call(k, "mo/files/list", "{\"path\":\"t\"}"), "mo-"));
    (void)snprintf(args, sizeof(args),
                   "{\"path\":\"t/u.bin\",\"temp\":\"%s\",\"offset\":3,"
                   "\"content\":\"Aw==\"}",
                   temp);
    assert_non_null(strstr(call(k, "mo/files/write", args), temp));
    (void)snprintf(args, sizeof(args), "{\"path\":\"t/u.bin\",\"temp\":\"%s\"}",
                   temp);
    assert_non_null(
        strstr(call(k, "mo/files/commit", args), "\"created\":true"));
    assert_non_null(strstr(call(k, "mo/files/read", "{\"path\":\"t/u.bin\"}"),
                           "\"content\":\"AAECAw==\""));
    (void)snprintf(path, sizeof(path), "%s/t/out", k->dir);
    assert_int_equal(symlink("/etc", path), 0);
    assert_non_null(
        strstr(call(k, "mo/files/read", "{\"path\":\"t/out/passwd\"}"),
               "\"mo.error\":\"path\""));
    assert_non_null(strstr(
        call(k, "mo/files/write", "{\"path\":\"t/out/x\",\"content\":\"\"}"),
        "\"mo.error\":\"path\""));
    assert_non_null(strstr(call(k, "mo/files/remove", "{\"path\":\"t\"}"),
                           "\"more\":false"));
    assert_int_equal(access("/etc/passwd", R_OK), 0);
    assert_non_null(strstr(call(k, "mo/files/list", "{}"), "\"entries\":[]"));
    assert_int_equal(open_fds(), fds);
    tb_server_fini(&k->server);
}

/* A file of the workspace, last written so many seconds ago. */
static void make_old(const struct kit *k, const char *name, time_t age)
{
    struct timespec at[2] = {{.tv_sec = time(NULL) - age},
                             {.tv_sec = time(NULL) - age}};
    char path[128];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", k->dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fclose(f);
    assert_int_equal(utimensat(AT_FDCWD, path, at, 0), 0);
}

static bool is_there(const struct kit *k, const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", k->dir, name);
    return access(path, F_OK) == 0;
}

/* A crash has left parts of files: the next file that is begun beside them
 * removes them, and nothing else. */
static void stale_parts(void **state)
{
    struct kit *k = *state;
    unsigned fds = open_fds();

    open_session(k);
    make_old(k, ".mo-aaaaaaaaaaaa", 7200);
    make_old(k, ".mo-bbbbbbbbbbbb", 60); /* may still be written */
    make_old(k, ".mo-notes", 7200);      /* the person's own */
    make_old(k, "old.txt", 7200);
    assert_non_null(strstr(
        call(k, "mo/files/write", "{\"path\":\"n.bin\",\"content\":\"\"}"),
        ".mo-"));
    assert_false(is_there(k, ".mo-aaaaaaaaaaaa"));
    assert_true(is_there(k, ".mo-bbbbbbbbbbbb"));
    assert_true(is_there(k, ".mo-notes"));
    assert_true(is_there(k, "old.txt"));
    assert_int_equal(open_fds(), fds);
    tb_server_fini(&k->server);
}

/* A cancelled search frees everything. */
static void cancelled_search(void **state)
{
    struct kit *k = *state;
    unsigned fds = open_fds();

    every_tool(state);
    open_session(k);
    tb_server_line(&k->server,
                   MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
                           "\"tools/call\",\"params\":{\"name\":"
                           "\"search_files\",\"arguments\":{\"pattern\":"
                           "\"one\"}}}"));
    assert_int_equal(tb_loop_round(&k->box.loop, NULL), 0);
    assert_int_equal(k->server.ncalls, 1);
    tb_server_line(&k->server,
                   MO_SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                           "cancelled\",\"params\":{\"requestId\":1}}"));
    assert_int_equal(k->server.ncalls, 0);
    assert_int_equal(open_fds(), fds);
    tb_server_fini(&k->server);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_tool, setup, teardown),
        cmocka_unit_test_setup_teardown(survive_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_of_a_file, setup, teardown),
        cmocka_unit_test_setup_teardown(stale_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(cancelled_search, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
