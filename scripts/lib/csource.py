"""csource - C text as the checkers need it: comments and literals blanked.

Not a parser: one scan that knows comments, string and character literals and
line continuations. What it blanks becomes spaces, newlines stay, so offsets
and line numbers of the rest are those of the file.
"""

import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
C_DIRS = ("src", "launcher", "toolbox", "tests", "fuzz", "bench")

PIECE = re.compile(
    r"""(?P<block>/\*.*?(?:\*/|\Z))
      | (?P<line>//(?:\\\n|[^\n])*)
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<char>'(?:\\.|[^'\\\n])*')""",
    re.DOTALL | re.VERBOSE,
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def files(top, dirs=C_DIRS):
    """The C files below dirs, in a stable order."""
    found = []
    for d in dirs:
        for pattern in ("*.c", "*.h"):
            found += (top / d).rglob(pattern)
    return sorted(p for p in found if "node_modules" not in p.parts)


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


class Source:
    """One file: raw text, code (blanked) and what the blanking found."""

    def __init__(self, top, path):
        self.path = path
        self.name = str(path.relative_to(top))
        self.raw = path.read_text(errors="replace")
        self.code = PIECE.sub(blank, self.raw)
        self.line_comments = [
            m.start() for m in PIECE.finditer(self.raw)
            if m.lastgroup == "line"
        ]

    def line_of(self, offset):
        return self.raw.count("\n", 0, offset) + 1

    def includes(self):
        """(offset, "<" or '"', name) of each #include that is code."""
        for m in INCLUDE.finditer(self.raw):
            if self.code[m.start():m.end()].strip():
                yield m.start(), m[1], m[2]
