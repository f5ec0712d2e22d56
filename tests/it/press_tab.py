#!/usr/bin/env python3
"""press_tab - types lines into an interactive shell and prints the results.

    press_tab.py SETUP LINES SHELL [ARGUMENT...]

The shell runs in a terminal. SETUP is its first line, which must define a
function mcp-orchestrator that prints "RAN:" and its arguments. Then each of
LINES, a tab and Enter are typed; the arguments that the function got are
printed, one line for each.
"""

import os
import pty
import re
import select
import sys
import time

setup, lines, command = sys.argv[1], sys.argv[2], sys.argv[3:]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
seen = b""


def until(pattern):
    global seen
    end = time.monotonic() + 60
    while time.monotonic() < end:
        m = re.search(pattern, seen)
        if m:
            seen = seen[m.end():]
            return m
        if select.select([fd], [], [], 1)[0]:
            seen += os.read(fd, 65536)
    sys.exit(f"not seen: {pattern!r} in {seen!r}")


os.write(fd, setup.encode() + b"; printf 'SET%s\\n' UP\r")
until(rb"SETUP")
for line in lines.split("\n"):
    os.write(fd, line.encode() + b"\t\r")
    print(until(rb"RAN:([^\r\n]*):END")[1].decode())
os.write(fd, b"exit\r")
