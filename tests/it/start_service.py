#!/usr/bin/env python3
"""start_service - starts a program as a service manager does.

    start_service.py HOST PORT [NAME=VALUE...] -- PROGRAM [ARGUMENT...]

Passes it a listening socket (LISTEN_FDS), prints "port N", then each message
that it sends (NOTIFY_SOCKET) as a line of JSON. SIGTERM and SIGHUP are passed
on. Ends with the program's exit code. The socket stays open meanwhile.
"""

import json
import os
import select
import signal
import socket
import sys
import tempfile

host, port, rest = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
env = dict(os.environ)
at = rest.index("--")
env.update(x.split("=", 1) for x in rest[:at])
command = rest[at + 1:]
kind = socket.AF_INET6 if ":" in host else socket.AF_INET
listener = socket.socket(kind, socket.SOCK_STREAM)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((host, port))
listener.listen()
port = listener.getsockname()[1]
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "notify")
notes = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notes.bind(path)
print("port", port, flush=True)

pid = os.fork()
if pid == 0:
    os.dup2(listener.fileno(), 3)
    os.set_inheritable(3, True)  # it may have been 3 before
    env.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", NOTIFY_SOCKET=path)
    os.execvpe(command[0], [x.replace("@PORT@", str(port)) for x in command], env)

for s in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(s, lambda n, _: os.kill(pid, n))
while True:
    if select.select([notes], [], [], 0.1)[0]:
        print(json.dumps(notes.recv(4096).decode()), flush=True)
        continue
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended:
        sys.exit(os.waitstatus_to_exitcode(status))
