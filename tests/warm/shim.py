"""Has the warm interpreter run a command with the files, folder and environment of this process, and ends as it did.

It is run without site-packages, under the name of the command; the socket is in its folder.
"""

import json
import os
import signal
import socket
import sys

with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "socket"))  # noqa: PTH100, PTH118, PTH120 - a quick start
    message = {"argv": sys.argv, "cwd": os.getcwd(), "env": dict(os.environ)}  # noqa: PTH109 - see above
    socket.send_fds(connection, [json.dumps(message).encode() + b"\n"], [0, 1, 2])
    with connection.makefile("rb") as answers:
        pid = int(answers.readline())
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, lambda number, _: os.kill(pid, number))
        code = int(answers.readline() or -9)
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
