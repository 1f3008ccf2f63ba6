"""A headless Chromium, spoken to through a pipe: no driver and no library is needed."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PROGRAM = next((found for name in NAMES if (found := shutil.which(name))), None)
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
           "--remote-debugging-pipe")  # fmt: skip
PATIENCE = 60  # seconds for an answer: other programs may run beside


class Browser:
    """One tab; `problems` are errors of scripts, `requests` everything that was asked for."""

    def __init__(self, width=1280, height=900):
        self._home = tempfile.mkdtemp(prefix="browser-")
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, to_write)]
        self._process = subprocess.Popen(
            [PROGRAM, *OPTIONS, f"--user-data-dir={self._home}", f"--window-size={width},{height}"],
            preexec_fn=lambda: [os.dup2(end, number) for number, end in enumerate(ends, 3)],  # noqa: PLW1509
            pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (to_read, to_write, *ends):
            os.close(end)
        self._number, self._rest, self._session = 0, b"", None
        self.problems, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def call(self, method, **params):
        """The answer to one command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = self._message()
            if found.get("id") == self._number:
                assert "error" not in found, found
                return found["result"]
            self._note(found)
        raise TimeoutError(method)

    def _message(self):
        while b"\0" not in self._rest:
            more = os.read(self._in, 1 << 20)
            assert more, "the browser is gone"
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def _note(self, message):
        params = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"]))
        if message.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"]["text"])
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def resize(self, width, height, phone=False):
        """The size of the window, in CSS pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=phone)  # fmt: skip

    def run(self, script):
        """The value of an expression; promises are waited for."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition):
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"never: {condition}"
            time.sleep(0.02)

    def open(self, path, fragment=""):
        """Open a file and wait until it is ready; the seconds that took."""
        start = time.monotonic()
        self.call("Page.navigate", url=Path(path).resolve().as_uri() + fragment)
        self.wait("document.documentElement?.dataset.ready === 'yes'")
        return time.monotonic() - start

    def press(self, key):
        """One key, as somebody presses it."""
        codes = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "End": 35, "Tab": 9}
        more = {"text": "\r" if key == "Enter" else ""}
        if key in codes:
            more["windowsVirtualKeyCode"] = codes[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **(more if kind == "keyDown" else {}))

    def type(self, text):
        """Text into what has the focus."""
        self.call("Input.insertText", text=text)

    def close(self):
        """End the browser."""
        self._process.terminate()
        self._process.wait(30)
        os.close(self._out)
        os.close(self._in)
        shutil.rmtree(self._home, ignore_errors=True)
