"""The tools that this script may call.

    import tools
    text = tools.read_file(path="notes.txt")      # a tool by its name
    tools.github.create_issue(title="Bug")        # or by its server
    tools.call("any-name", {"a": 1})              # or by its exact name
    tools.find("send a message")                  # [{name, description, ...}]

    async def main():
        await asyncio.gather(tools.aio.read_file(path="a"),
                             tools.aio.read_file(path="b"))

A call returns the tool's structured content if there is any, else its text,
else the whole result; tools.call(name, arguments, raw=True) returns the whole
result. A call that fails raises a ToolError.

Each call is a line of JSON over the descriptor in MO_TOOLS_FD. Threads may
call at the same time.
"""
# Named with a line, because every other name is a tool. The packages json,
# threading and asyncio would take longer to load than the interpreter itself,
# so their parts in C are used. Scripts without threads and event loops are
# most, and this file is compiled for each of them: tools_shared.py has the rest.
import _json
import _thread
import itertools as _itertools
import os as _os
import sys as _sys


class ToolError(Exception):
    """A call failed. `kind` says how; `result` is what the tool returned."""

    kind = "failed"

    def __init__(self, message, result=None):
        super().__init__(message)
        self.result = result


class Failed(ToolError):
    """The tool was not run, or it returned an error."""


class Rejected(ToolError):
    """A person said no; `reason` is what they gave as reason."""

    kind = "rejected"

    @property
    def reason(self):
        return str(self)


class Denied(ToolError):
    """A rule forbids the call."""

    kind = "denied"


class Unknown(ToolError):
    """The tool may have run or not: the outcome is not known."""

    kind = "unknown"


class Gone(ToolError):
    """There is no connection to the tools."""

    kind = "gone"


class Limit(ToolError):
    """The script made too many calls."""

    kind = "limit"


_KINDS = {e.kind: e for e in (Failed, Rejected, Denied, Unknown, Gone, Limit)}


# --- the connection ---------------------------------------------------------

def _no_json(value):
    raise TypeError(f"{type(value).__name__} is no JSON value")


class _Numbers:
    """How numbers of JSON are read."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


_pieces = _json.make_encoder(None, _no_json, _json.encode_basestring_ascii,
                             None, ":", ",", False, False, False)
_scan = _json.make_scanner(_Numbers)


class _Connection:
    """Calls and answers, one at a time, until there are threads or an event
    loop."""

    def __init__(self, fd):
        self.fd = fd
        self.ids = _itertools.count(1)
        self.ended = fd is None
        self.rest = []  # pieces of a line that has not ended
        self.alone = _thread.allocate_lock()
        self.shared = None

    def encode(self, frame):
        frame["id"] = next(self.ids)
        line = "".join(_pieces(frame, 0)).encode() + b"\n"
        if len(line) > 1 << 20:
            raise Failed("the arguments are longer than 1 MiB")
        if self.ended:
            raise Gone("there is no connection to the tools")
        return line

    def write(self, line):
        while line:
            line = line[_os.write(self.fd, line):]

    def read(self):
        """Read once. Returns the answers that are whole now."""
        piece = _os.read(self.fd, 1 << 16)
        if not piece:
            raise OSError("the connection to the tools ended")
        if b"\n" not in piece:  # a long answer is joined once
            self.rest.append(piece)
            return ()
        *lines, rest = b"".join([*self.rest, piece]).split(b"\n")
        self.rest = [rest] if rest else []
        return [_scan(line.decode(), 0)[0] for line in lines]

    def exchange(self, frame):
        line = self.encode(frame)
        try:
            self.write(line)
            while True:
                for answer in self.read():
                    if answer["id"] == frame["id"]:  # else it was given up
                        return answer
        except OSError:
            self.ended = True
            raise Gone("the connection to the tools ended") from None

    def ask(self, frame):
        if _thread._count() == 0:
            with self.alone:
                if self.shared is None:
                    return self.exchange(frame)
        return self.share().ask(frame)

    def share(self):
        with self.alone:
            if self.shared is None:
                import tools_shared
                self.shared = tools_shared.Shared(self)
        return self.shared

    def forget(self):
        """In a forked process: the connection is its parent's."""
        self.ended = True
        _os.close(self.fd)


_script = _sys.argv[0] if _sys.argv else ""
_descriptor = _os.environ.pop("MO_TOOLS_FD", None)
_connection = _Connection(int(_descriptor) if _descriptor else None)
if _descriptor:
    _os.set_inheritable(_connection.fd, False)  # not for what it starts
    _os.register_at_fork(after_in_child=_connection.forget)


# --- calls ------------------------------------------------------------------

def _line():
    """The line of the script that makes this call."""
    frame = _sys._getframe(2)
    while frame and frame.f_code.co_filename != _script:
        frame = frame.f_back
    return frame.f_lineno if frame else None


def _frame(name, arguments, line):
    frame = {"tool": name, "arguments": dict(arguments or {})}
    if line:
        frame["line"] = line
    return frame


def _result(answer):
    error = answer.get("error")
    if error is not None:
        kind = _KINDS.get(error.get("kind"), Failed)
        raise kind(error.get("message", "the call failed"))
    return answer["result"]


def _text(result):
    parts = result.get("content") or []
    if parts and all(p.get("type") == "text" for p in parts):
        return "\n".join(p.get("text", "") for p in parts)
    return None


def _value(answer, raw):
    result = _result(answer)
    if raw:
        return result
    text = _text(result)
    if result.get("isError"):
        raise Failed(text or "the tool returned an error", result)
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    return result if text is None else text


def _found(answer):
    result = _result(answer)
    content = result.get("structuredContent") or result
    return content.get("tools", []) if isinstance(content, dict) else content


def call(name, arguments=None, raw=False):
    """Call a tool by its exact name."""
    return _value(_connection.ask(_frame(name, arguments, _line())), raw)


def find(words, limit=10):
    """Tools for a task in plain words: [{name, description, confidence}]."""
    return _found(_connection.ask({"find": words, "limit": limit}))


# --- tools as functions -----------------------------------------------------

_names = None


def _exact(identifier):
    """The name of a tool that is no identifier, such as "create-issue"."""
    global _names
    if _names is None:
        try:
            path = _os.path.join(_os.path.dirname(__file__), "names.json")
            with open(path, encoding="utf-8") as file:
                _names = _scan(file.read(), 0)[0]
        except OSError:
            _names = {}
    return _names.get(identifier, identifier)


class _Tool:
    """tools.NAME, or tools.SERVER, whose members are its tools."""

    def __init__(self, name, caller):
        self._name = name
        self._caller = caller

    def __call__(self, arguments=None, /, **named):
        return self._caller(_exact(self._name),
                            {**(arguments or {}), **named})

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Tool(f"{self._name}_{name}", self._caller)

    def __repr__(self):
        return f"<tool {self._name}>"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "aio":
        globals()["aio"] = _connection.share().aio
        return aio
    return _Tool(name, call)
