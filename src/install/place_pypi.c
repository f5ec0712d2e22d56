/* place_pypi.c - downloads the wheels of a PyPI package; see place_fill.h.
 *
 *   site/             the packages, unpacked by pip
 *   requirements.txt  name, version and hash of each
 *   start.py          starts the program */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "install/place_fill.h"

#define ENTRIES_MAX  ((size_t)64 * 1024)        /* entry_points.txt */
#define RECORD_MAX   ((size_t)16 * 1024 * 1024) /* RECORD */
#define DIST_INFO    ".dist-info"
#define PYTHON_CHARS MO_ALNUM "_."

/* The interpreter runs isolated and without its own packages (-I -S). */
static const char start_code[] =
    "import functools\n"
    "import importlib\n"
    "import os\n"
    "import site\n"
    "import sys\n"
    "\n"
    "packages = os.path.join(os.path.dirname(os.path.abspath(__file__)), "
    "'site')\n"
    "sys.path.insert(0, packages)\n"
    "site.setquit()\n"
    "site.addsitedir(packages)\n"
    "os.environ['PYTHONPATH'] = packages\n"
    "sys.argv[0] = '%s'\n"
    "module, name = '%.*s', '%.*s'\n"
    "start = functools.reduce(getattr, name.split('.'), "
    "importlib.import_module(module))\n"
    "sys.exit(start())\n";

static int write_requirements(const struct mo_fill *f, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_INSTALL_BYTES_MAX};
    struct mo_json list = {f->plan->packages, strlen(f->plan->packages)};

    mo_json_each (it, list) {
        (void)mo_json_str_buf(it.key, &b);
        mo_buf_puts(&b, "==");
        (void)mo_json_str_buf(mo_json_get(it.val, "version"), &b);
        mo_buf_puts(&b, " --hash=");
        (void)mo_json_str_buf(mo_json_get(it.val, "integrity"), &b);
        mo_buf_putc(&b, '\n');
    }
    if (mo_buf_err(&b))
        return mo_fail(e, MO_ETOOBIG, "it needs too many packages");
    return mo_fill_write(f, "requirements.txt", mo_buf_view(&b), e);
}

/* --- what pip unpacked ---------------------------------------------------- */

/* Paths that lead out of the directory. pip writes "../../bin/NAME" for the
 * programs that it made itself. */
static int check_record(struct mo_span text, const char *name, struct mo_err *e)
{
    while (text.p) {
        struct mo_span path = mo_span_cut(&text, '\n');

        (void)mo_span_strip(&path, MO_SPAN("\""));
        path = mo_span_cut(&path, ',');
        (void)mo_span_strip(&path, MO_SPAN("../../bin/"));
        if (mo_span_starts(path, MO_SPAN("/")) ||
            mo_span_search(path, MO_SPAN("../")) >= 0)
            return mo_fail(e, MO_EPOLICY,
                           "the list of files of %.100s names one outside its "
                           "folder",
                           name);
    }
    return 0;
}

/* True for the directory of the package itself, "name-version.dist-info". */
static bool is_top(const struct mo_fill *f, const char *dir_name)
{
    char normal[MO_PIP_NAME_MAX + 1];
    struct mo_span s = mo_span_cstr(dir_name), name;

    name = mo_span_cut(&s, '-');
    mo_pip_normal(name, normal);
    return strcmp(normal, f->plan->package) == 0;
}

static void close_dir(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

/* Checks all RECORD files; entries gets the text of entry_points.txt. */
static int read_infos(const struct mo_fill *f, struct mo_buf *entries,
                      struct mo_err *e)
{
    char site[PATH_MAX], info[PATH_MAX], path[PATH_MAX];
    MO_CLEANUP(close_dir) DIR *d = NULL;
    int rc = mo_place_join(site, f->dir, MO_PIP_SITE, e);

    if (rc == 0)
        d = opendir(site);
    if (!d)
        return mo_fail_sys(e, "%s", site);
    for (struct dirent *x = readdir(d); x && rc == 0; x = readdir(d)) {
        mo_autobuf struct mo_buf record = {.max = RECORD_MAX};

        if (!mo_span_ends(mo_span_cstr(x->d_name), MO_SPAN(DIST_INFO)))
            continue;
        rc = mo_place_join(info, site, x->d_name, e);
        if (rc == 0)
            rc = mo_place_join(path, info, "RECORD", e);
        if (rc == 0)
            rc = mo_file_read(path, RECORD_MAX, &record, NULL, e);
        if (rc == 0)
            rc = check_record(mo_buf_view(&record), x->d_name, e);
        if (rc == 0 && is_top(f, x->d_name) &&
            mo_place_join(path, info, "entry_points.txt", e) == 0)
            (void)mo_file_read(path, ENTRIES_MAX, entries, NULL, NULL);
    }
    return rc;
}

/* --- the program ---------------------------------------------------------- */

struct program {
    struct mo_span wanted, name, target; /* target: "module:function" */
    bool exact;                          /* it has the wanted name */
    size_t count;
    struct mo_buf names; /* for the error */
};

static void add_program(struct program *k, struct mo_span line)
{
    struct mo_span target = line,
                   name = mo_span_trim(mo_span_cut(&target, '='));
    char a[MO_PIP_NAME_MAX + 1], b[MO_PIP_NAME_MAX + 1];

    if (!target.p || !mo_pip_is_name(name))
        return;
    target = mo_span_trim(target);
    mo_pip_normal(name, a);
    mo_pip_normal(k->wanted, b);
    mo_buf_puts(&k->names, k->names.len ? ", " : "");
    mo_buf_span(&k->names, name);
    if (!k->exact) {
        k->name = name;
        k->target = mo_span_cut(&target, ' '); /* "[extra]" may follow */
    }
    k->exact |= strcmp(a, b) == 0;
    k->count++;
}

static void read_programs(struct mo_span text, struct program *k)
{
    bool inside = false;

    while (text.p) {
        struct mo_span line = mo_span_trim(mo_span_cut(&text, '\n'));

        if (line.n && line.p[line.n - 1] == '\r')
            line.n--;
        if (mo_span_starts(line, MO_SPAN("[")))
            inside = mo_span_is(line, "[console_scripts]");
        else if (inside)
            add_program(k, line);
    }
}

/* The program that was asked for or is named like the package, else the only
 * one. */
static int write_start(const struct mo_fill *f, struct mo_span entries,
                       struct mo_err *e)
{
    struct program k = {.wanted = mo_span_cstr(f->plan->bin), .names.max = 200};
    mo_autobuf struct mo_buf b = {.max = 8192}, name = {.max = 300};
    bool asked = strcmp(f->plan->bin, f->plan->package) != 0;
    struct mo_span module;
    int rc = 0;

    read_programs(entries, &k);
    if (k.count == 0)
        rc = mo_fail(e, MO_EPROTO,
                     "the package has no program, so it is no server that can "
                     "be started");
    else if (!k.exact && (asked || k.count > 1))
        rc = mo_fail(e, MO_EINVAL,
                     "the package has no program %.100s, it has %s: choose one "
                     "with --bin",
                     f->plan->bin, mo_buf_cstr(&k.names));
    mo_buf_fini(&k.names);
    if (rc < 0)
        return rc;
    module = mo_span_cut(&k.target, ':');
    k.target = mo_span_trim(k.target);
    module = mo_span_trim(module);
    if (!module.n || !k.target.n || !mo_span_only(module, PYTHON_CHARS) ||
        !mo_span_only(k.target, PYTHON_CHARS))
        return mo_fail(e, MO_EPROTO, "its program cannot be started");
    mo_buf_span(&name, k.name);
    mo_buf_printf(&b, start_code, mo_buf_cstr(&name), (int)module.n, module.p,
                  (int)k.target.n, k.target.p);
    return mo_fill_write(f, "start.py", mo_buf_view(&b), e);
}

int mo_fill_pypi(const struct mo_fill *f, struct mo_err *e)
{
    mo_autobuf struct mo_buf entries = {.max = ENTRIES_MAX};
    int rc = write_requirements(f, e);

    if (rc == 0)
        rc = mo_pip_install(f->tools->pip, f->dir, e);
    if (rc == 0)
        rc = read_infos(f, &entries, e);
    if (rc == 0)
        rc = write_start(f, mo_buf_view(&entries), e);
    mo_jw_member_raw(f->w, "packages", mo_span_cstr(f->plan->packages));
    return rc;
}
