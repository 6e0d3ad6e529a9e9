"""Drives a program on a terminal of its own: terminal.py COLUMNS PROGRAM ARGS…, with steps on stdin.

Each step is a line: `expect TEXT` waits until it is written, `send TEXT` types it, `signal NAME` sends a signal. What the program
wrote, how it ended and whether the terminal is as it was comes out as JSON.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

columns, command = int(sys.argv[1]), sys.argv[2:]
steps = [line.rstrip("\n").split(" ", 1) for line in sys.stdin if line.strip()]
parent, child = pty.openpty()
fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
before = termios.tcgetattr(child)
process = os.fork()
if process == 0:
    os.setsid()
    fcntl.ioctl(child, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(child, fd)
    os.execvp(command[0], command)
seen, place, by = "", 0, time.monotonic() + 60


def read():
    global seen
    ready, _, _ = select.select([parent], [], [], 0.05)
    if ready:
        seen += os.read(parent, 65536).decode("utf-8", "replace")
    return bool(ready)


for what, text in steps:
    if what == "expect":
        while text not in seen[place:]:
            if time.monotonic() > by:
                sys.exit(f"never saw {text!r} in {seen!r}")
            read()
        place = seen.index(text, place) + len(text)
    elif what == "send":
        os.write(parent, text.encode().decode("unicode_escape").encode("latin-1"))
    elif what == "signal":
        os.kill(process, getattr(signal, text))
while True:
    ended, status = os.waitpid(process, os.WNOHANG)
    if ended:
        break
    if time.monotonic() > by:
        os.kill(process, signal.SIGKILL)
        sys.exit(f"it did not end: {seen!r}")
    read()
while read():
    pass
code, restored = os.waitstatus_to_exitcode(status), termios.tcgetattr(child) == before
print(json.dumps({"seen": seen, "code": code, "restored": restored}))
