"""An `ssh` that runs commands here, in a home folder of its own, over a link as bad as a test wants."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

_SCRIPT = """\
#!{python} -IS
import json, os, signal, subprocess, sys, threading, time
folder = os.path.dirname(os.path.abspath(sys.argv[0]))
with open(folder + "/link.json") as file:
    link = json.load(file)
host, command = sys.argv[-2:]
what = "look" if "uname" in command else "copy" if "cat" in command else "run"
with open(folder + "/log", "a") as log:
    print(what, *sys.argv[1:-1], file=log)
with open(folder + "/log") as log:
    times = sum(line.startswith(what + " ") for line in log)
if link.get("refuse") and times >= link.get("refuse_from", {{}}).get(what, 1):
    sys.exit(print(link["refuse"], file=sys.stderr) or 255)
environment = {{"HOME": folder + "/home", "PATH": folder + "/remote:" + os.defpath}}
child = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         env=environment, process_group=0)
cut = link.get("cut", {{}}).get(what, [])
left = cut[times - 1] if times <= len(cut) else None

def end(*_):
    os.killpg(child.pid, signal.SIGKILL)
    if left is not None:
        print("Connection to", host, "closed by remote host.", file=sys.stderr, flush=True)
    os._exit(255)

signal.signal(signal.SIGTERM, end)

def pump(source, target, cut, slow):
    global left
    while data := os.read(source, link.get("chunk", 65536) if slow else 65536):
        time.sleep(link.get("delay", 0) if slow else 0)
        if cut and link.get("cut_when") and os.path.exists(link["cut_when"]):
            left = 0
        if cut and left is not None:
            data = data[:left]
            left -= len(data)
        os.write(target, data)
        if cut and left == 0:
            return True
    return False

def send():
    try:
        dropped = pump(0, child.stdin.fileno(), what == "copy", False)
    except OSError:
        return
    child.stdin.close()
    if dropped:
        child.wait()
        end()

threading.Thread(target=send, daemon=True).start()
if pump(child.stdout.fileno(), 1, what == "run", what == "run"):
    end()
sys.exit(child.wait())
"""


class FakeSsh:
    """The folder with `ssh`. Options of the link: `refuse`, what it says to end with 255, from the n-th call
    of a kind on with `refuse_from`; `cut`, bytes that get through per connection, by kind (look, copy, run);
    `cut_when`, a file from whose being on none of a runner's answers gets through;
    `delay` seconds per `chunk` bytes of them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "home").mkdir(parents=True)
        (folder / "remote").mkdir()
        program = folder / "ssh"
        program.write_text(_SCRIPT.format(python=sys.executable))
        program.chmod(0o755)
        self.set()

    def set(self, **link: object) -> None:
        """Choose what the link is like, and forget the calls."""
        (self.folder / "link.json").write_text(json.dumps(link))
        (self.folder / "log").write_text("")

    def uname(self, text: str) -> None:
        """Let the host say another thing of itself."""
        program = self.folder / "remote/uname"
        program.write_text(f"#!/bin/sh\necho '{text}'\n")
        program.chmod(0o755)

    @property
    def path(self) -> str:
        """PATH of a program that is to find this ssh."""
        return f"{self.folder}:{os.environ['PATH']}"

    @property
    def calls(self) -> list[str]:
        """Kinds of the calls so far."""
        return [line.split()[0] for line in (self.folder / "log").read_text().splitlines()]

    @property
    def runners(self) -> list[Path]:
        """Runners on the host."""
        return sorted((self.folder / "home/.cache/cyclescope").glob("runner-*[0-9a-f]"))
