"""A small WebDriver client: a real headless Chromium, driven through chromedriver with the standard library alone."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["END", "ENTER", "ESCAPE", "HOME", "RIGHT", "TAB", "Browser", "missing"]

ESCAPE, TAB, RIGHT, HOME, END, ENTER = "\ue00c", "\ue004", "\ue014", "\ue011", "\ue010", "\ue007"  # keys

_ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
              "--disable-component-update", "--disable-default-apps", "--disable-sync", "--hide-scrollbars")  # fmt: skip
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# Straight to this machine, whatever proxy the environment names.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def missing() -> str | None:
    """The reason why no browser can run here, if there is one."""
    absent = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(absent)} not found; on Debian: apt install chromium chromium-driver" if absent else None


class Browser:
    """A browser with an empty profile, closed at the end of its ``with`` block."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="browser-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._address = f"http://127.0.0.1:{free.getsockname()[1]}"
        port = self._address.rsplit(":", 1)[1]
        driver = shutil.which("chromedriver")
        assert driver is not None, missing()
        self._driver = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._session = ""

    def __enter__(self) -> Self:
        options = {"args": [*_ARGUMENTS, f"--user-data-dir={self.folder / 'profile'}"], "binary": shutil.which("chromium")}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        try:
            self._wait_for_driver()
            answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self._stop()
            raise
        self._session = f"/session/{answer['sessionId']}"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._call("DELETE", self._session)
        finally:
            self._stop()

    def open(self, path: Path) -> None:
        self.post("/url", {"url": path.absolute().as_uri()})

    def script(self, source: str, *arguments: Any) -> Any:
        """Run the body of a function in the page and return its result."""
        return self.post("/execute/sync", {"script": source, "args": list(arguments)})

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self.post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def media(self, kind: str = "", **features: str) -> None:
        """Emulate a medium, such as print, and preferences, such as ``prefers_color_scheme="dark"``."""
        listed = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.devtools("Emulation.setEmulatedMedia", media=kind, features=listed)

    def resize(self, width: int, height: int = 900) -> None:
        """Set the inner size of the window, even narrower than a desktop allows."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def keys(self, *keys: str) -> None:
        """Press keys one after the other, wherever the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def point(self, selector: str, *, press: bool = False, kind: str = "mouse") -> None:
        """Move the pointer onto the middle of an element; ``press`` clicks or taps it."""
        element = self.post("/element", {"using": "css selector", "value": selector})
        self.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        steps: list[dict[str, Any]] = [{"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": element}]
        if press:
            steps += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        pointer = {"type": "pointer", "id": kind, "parameters": {"pointerType": kind}, "actions": steps}
        self.post("/actions", {"actions": [pointer]})

    def log(self, kind: str) -> list[dict[str, Any]]:
        """The log since the last call: ``"browser"`` (the console) or ``"performance"`` (requests and more)."""
        entries: list[dict[str, Any]] = self.post("/se/log", {"type": kind})
        return entries

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        picture = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._call("POST", self._session + path, body)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with _OPENER.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise RuntimeError(f"{method} {path}: {error.read().decode()[:2000]}") from None

    def _wait_for_driver(self) -> None:
        for _ in range(300):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("chromedriver did not start within 30 seconds")

    def _stop(self) -> None:
        self._driver.terminate()
        self._driver.wait(timeout=30)
        shutil.rmtree(self.folder, ignore_errors=True)
