#include "install/pip.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/json/json.h"
#include "codec/mount.h"

#define SPEC_MAX 400
#define PROBE_MS 20000

/* --- finding Python ------------------------------------------------------- */

static const char probe_code[] =
    "import json, sys\n"
    "try:\n"
    "    import pip\n"
    "    version = pip.__version__\n"
    "except ImportError:\n"
    "    version = ''\n"
    "print(json.dumps([sys.executable, version]))\n";

enum found { NOTHING, NO_PIP, OUTSIDE, GOOD };

/* Asks a Python what it is; a script may stand before it. It finds itself by
 * argv[0]. */
static enum found probe(struct mo_pip *p, const char *file, bool boxed,
                        bool needs_pip)
{
    const char *argv[] = {file, "-c", probe_code, NULL};
    const struct mo_run what = {"Python", file, argv, "/", PROBE_MS, true};
    mo_autobuf struct mo_buf out = {.max = 8192}, b = {.max = PATH_MAX};
    struct mo_json_doc doc = {.root = {NULL, 0}};
    char real[PATH_MAX];

    if (mo_runner_do(p->run, &what, &out, NULL) < 0 ||
        mo_json_parse(mo_buf_view(&out), 4, &doc, NULL) < 0 ||
        mo_json_str_buf(mo_json_at(doc.root, 0), &b) < 0 ||
        !realpath(mo_buf_cstr(&b), real))
        return NOTHING;
    (void)snprintf(p->own, sizeof(p->own), "%s", mo_buf_cstr(&b));
    (void)snprintf(p->python, sizeof(p->python), "%s", real);
    if (boxed && !mo_path_is_in(real, "/usr"))
        return OUTSIDE;
    return !needs_pip || mo_json_at(doc.root, 1).n > 2 ? GOOD : NO_PIP;
}

int mo_pip_open(struct mo_pip *p, struct mo_runner *run, bool boxed,
                bool needs_pip, struct mo_err *e)
{
    char file[MO_SPAWN_PATH_MAX] = "";
    enum found got = NOTHING, best;

    p->run = run;
    if (mo_spawn_find("python3", run->env, file, NULL) < 0)
        file[0] = '\0';
    else
        got = probe(p, file, boxed, needs_pip);
    best = got;
    if (got != GOOD && file[0] && strcmp(file, "/usr/bin/python3") != 0) {
        struct mo_pip other = {.run = run};

        got = probe(&other, "/usr/bin/python3", boxed, needs_pip);
        if (got == GOOD || best == NOTHING)
            *p = other;
        best = got > best ? got : best;
    }
    if (best == GOOD)
        return 0;
    if (best == OUTSIDE)
        return mo_fail(e, MO_ENOTFOUND,
                       "the Python %s is outside /usr, which a box does not "
                       "show: install python3 and python3-pip of the system, "
                       "or use --unboxed",
                       p->python);
    if (best == NO_PIP)
        return mo_fail(e, MO_ENOTFOUND,
                       "%s has no pip, which downloads the package: install "
                       "it (python3-pip of the system, or `python3 -m "
                       "ensurepip`)",
                       p->own);
    return mo_fail(e, MO_ENOTFOUND,
                   "this server needs Python, and there is no `python3` in "
                   "PATH: install Python 3.8 or later with pip");
}

/* --- names ---------------------------------------------------------------- */

bool mo_pip_is_name(struct mo_span s)
{
    return s.n && s.n <= MO_PIP_NAME_MAX && mo_span_only(s, MO_ALNUM "-_.") &&
           mo_span_only(mo_span_head(s, 1), MO_ALNUM) &&
           mo_span_only(mo_span_skip(s, s.n - 1), MO_ALNUM);
}

bool mo_pip_is_version(struct mo_span s)
{
    struct mo_span digits = s;

    (void)mo_span_strip(&digits, MO_SPAN("v"));
    return digits.n && s.n <= 128 && mo_is_digit(digits.p[0]) &&
           mo_span_only(s, MO_ALNUM "-_.+!");
}

void mo_pip_normal(struct mo_span name, char out[MO_PIP_NAME_MAX + 1])
{
    size_t n = 0;

    for (size_t i = 0; i < name.n && n < MO_PIP_NAME_MAX; i++) {
        char c = name.p[i];

        if (c == '-' || c == '_' || c == '.')
            c = '-';
        else if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (c != '-' || n == 0 || out[n - 1] != '-')
            out[n++] = c;
    }
    out[n] = '\0';
}

/* --- commands ------------------------------------------------------------- */

static bool said(const struct mo_runner *r, const char *words)
{
    return mo_span_search(mo_span(r->tail, r->ntail), mo_span_cstr(words)) >= 0;
}

static int resolve(struct mo_pip *p, const char *spec, const char *verbosity,
                   struct mo_buf *out, struct mo_err *e)
{
    const char *argv[] = {p->own,
                          "-m",
                          "pip",
                          "--disable-pip-version-check",
                          "--no-input",
                          "install",
                          verbosity,
                          "--dry-run",
                          "--ignore-installed",
                          "--only-binary",
                          ":all:",
                          "--root-user-action=ignore",
                          "--no-user", /* whatever its settings say */
                          "--report",
                          "-",
                          spec,
                          NULL};
    const struct mo_run what = {"pip", p->own, argv, "/", MO_PIP_RESOLVE_MS,
                                true};

    return mo_runner_do(p->run, &what, out, e);
}

/* Why pip found nothing: it says so only if it is asked again, in detail. */
static int explain(struct mo_pip *p, const char *spec, struct mo_err *e)
{
    mo_autobuf struct mo_buf out = {.max = MO_PIP_TEXT_MAX};

    if (said(p->run, "Could not find a version") &&
        resolve(p, spec, "-vv", &out, NULL) == MO_EUNAVAIL &&
        mo_span_search(mo_buf_view(&out),
                       MO_SPAN("No sources permitted for")) >= 0)
        return mo_fail(
            e, MO_EPOLICY,
            "there is only the source code of %.200s or of a package "
            "that it needs; building it would run its setup.py, so "
            "only wheels are installed",
            spec);
    if (said(p->run, "Could not find a version"))
        return mo_fail(e, MO_ENOTFOUND,
                       "pip finds no %.200s with a wheel for this machine",
                       spec);
    if (said(p->run, "no such option"))
        return mo_fail(e, MO_ENOTFOUND,
                       "the pip of %s is too old: install pip 22.2 or later",
                       p->own);
    return e->code;
}

int mo_pip_resolve(struct mo_pip *p, struct mo_span name,
                   struct mo_span version, struct mo_buf *out, struct mo_err *e)
{
    char spec[SPEC_MAX];
    struct mo_err first = {0};
    int rc;

    MO_BUG_ON(!mo_pip_is_name(name) ||
              (version.n && !mo_pip_is_version(version)));
    (void)snprintf(spec, sizeof(spec), "%.*s%s%.*s", (int)name.n, name.p,
                   version.n ? "==" : "", (int)version.n,
                   version.n ? version.p : "");
    rc = resolve(p, spec, "--quiet", out, &first);
    if (rc < 0) {
        *e = first;
        return rc == MO_EUNAVAIL ? explain(p, spec, e) : rc;
    }
    if (said(p->run, "is a yanked version"))
        return mo_fail(e, MO_EPOLICY,
                       "its publisher has withdrawn (yanked) %.200s or a "
                       "version that it needs",
                       spec);
    return 0;
}

/* Bytecode that does not depend on times and places, so that the same wheels
 * give the same digest. Files that do not compile are no failure. */
static int compile(struct mo_pip *p, const char *dir, struct mo_err *e)
{
    const char *argv[] = {p->own,
                          "-I",
                          "-m",
                          "compileall",
                          "-q",
                          "-s",
                          dir,
                          "--invalidation-mode",
                          "unchecked-hash",
                          MO_PIP_SITE,
                          NULL};
    const struct mo_run what = {"Python",          p->own, argv, dir,
                                MO_PIP_INSTALL_MS, true};
    mo_autobuf struct mo_buf out = {.max = MO_PIP_TEXT_MAX};
    int rc = mo_runner_do(p->run, &what, &out, e);

    return rc == MO_EUNAVAIL ? 0 : rc;
}

int mo_pip_install(struct mo_pip *p, const char *dir, struct mo_err *e)
{
    const char *argv[] = {p->own,
                          "-m",
                          "pip",
                          "--disable-pip-version-check",
                          "--no-input",
                          "install",
                          "--quiet",
                          "--target",
                          MO_PIP_SITE,
                          "--no-deps",
                          "--no-compile",
                          "--require-hashes",
                          "--only-binary",
                          ":all:",
                          "--root-user-action=ignore",
                          "--no-user", /* whatever its settings say */
                          "-r",
                          "requirements.txt",
                          NULL};
    const struct mo_run what = {"pip", p->own, argv, dir, MO_PIP_INSTALL_MS,
                                false};
    mo_autobuf struct mo_buf out = {.max = MO_PIP_TEXT_MAX};
    int rc = mo_runner_do(p->run, &what, &out, e);

    return rc < 0 ? rc : compile(p, dir, e);
}
