"""Headless Chromium, driven through its DevTools protocol over two pipes: nothing but the standard library.

    with Browser(chromium) as browser:
        page = browser.open("file:///tmp/report.html", 1280, 800)
        page.evaluate("document.title")
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

OPTIONS = ("--headless=new --remote-debugging-pipe --no-first-run --no-default-browser-check --disable-gpu "
           "--disable-dev-shm-usage --disable-background-networking --disable-component-update --disable-sync "
           "--disable-extensions --hide-scrollbars --mute-audio").split()


def find():
    """Chromium's path; None where there is none."""
    return next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)


class Failure(Exception):
    """What the browser answered instead of a result."""


class Browser:
    def __init__(self, program):
        self.home = tempfile.mkdtemp(prefix="assay_browser_")
        there, self.out = os.pipe()
        self.into, back = os.pipe()
        options = OPTIONS + [f"--user-data-dir={self.home}"]
        if os.geteuid() == 0:
            options.append("--no-sandbox")  # it cannot be had as root
        # DevTools reads file descriptor 3 and writes 4.
        self.process = subprocess.Popen(["sh", "-c", f"exec \"$@\" 3<&{there} 4>&{back}", "sh", program, *options, "about:blank"],
                                        pass_fds=(there, back), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "HOME": self.home})
        os.close(there)
        os.close(back)
        self.count, self.waiting, self.events = 0, b"", []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except (Failure, OSError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.home, ignore_errors=True)

    def read(self, seconds):
        """The next message; None after so many seconds."""
        end = time.monotonic() + seconds
        while b"\0" not in self.waiting:
            if not select.select([self.into], [], [], max(0, end - time.monotonic()))[0]:
                return None
            data = os.read(self.into, 1 << 20)
            if not data:
                raise Failure("the browser ended")
            self.waiting += data
        text, _, self.waiting = self.waiting.partition(b"\0")
        return json.loads(text)

    def call(self, method, session=None, seconds=60, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read(seconds)
            if answer is None:
                raise Failure(f"{method}: no answer in {seconds} s")
            if answer.get("id") != self.count:
                self.events.append(answer)
            elif "error" in answer:
                raise Failure(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def open(self, url, width, height, dark=False):
        return Page(self, url, width, height, dark)


class Page:
    """A page that was loaded; what it asked for and complained about is kept."""

    def __init__(self, browser, url, width, height, dark):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.events.clear()
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.size(width, height)
        if dark:
            self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise Failure(f"{expression}: {result['exceptionDetails'].get('exception', {}).get('description', '')}")
        return result["result"].get("value")

    def wait(self, expression, seconds=30):
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise Failure(f"not in {seconds} s: {expression}")
            time.sleep(0.03)

    def settle(self):
        """Waits until what was asked for is drawn; not for ever, as a page behind another one is not drawn."""
        self.evaluate("new Promise(r => { requestAnimationFrame(() => requestAnimationFrame(() => r(1)));"
                      "setTimeout(() => r(0), 500); })")

    def key(self, key, modifiers=0):
        """A key as a person presses it, who sees what it does. modifiers: 2 Ctrl, 8 Shift."""
        self.press(key, modifiers)
        self.settle()

    def press(self, key, modifiers=0):
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37,
                 "ArrowRight": 39, "PageDown": 34, "PageUp": 33, "Home": 36, "End": 35}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        # Keys that are not characters are told by their number.
        number = codes.get(key) or (ord(key.upper()) if len(key) == 1 and key.isalnum() else 0)
        down = {"type": "keyDown" if text else "rawKeyDown", "key": key, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        if text:
            down["text"] = text
        self.call("Input.dispatchKeyEvent", **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=number, modifiers=modifiers)

    def type(self, text):
        for c in text:
            self.press(c)
        self.settle()

    def place(self, selector):
        """The middle of an element, brought into sight."""
        return self.evaluate(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'nearest', behavior: 'instant'}});"
                             "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector):
        x, y = self.place(selector)
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.settle()

    def screenshot(self, path, whole=False):
        self.settle()
        more = {"captureBeyondViewport": True} if whole else {}
        image = self.call("Page.captureScreenshot", format="png", **more)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(image))

    def requests(self):
        """URLs that the page asked for."""
        self.evaluate("1")
        return [e["params"]["request"]["url"] for e in self.browser.events
                if e.get("sessionId") == self.session and e["method"] == "Network.requestWillBeSent"]

    def complaints(self):
        """Errors and warnings of the console, and exceptions."""
        self.evaluate("1")
        found = []
        for e in self.browser.events:
            if e.get("sessionId") != self.session:
                continue
            p = e["params"]
            if e["method"] == "Runtime.exceptionThrown":
                found.append(p["exceptionDetails"].get("exception", {}).get("description") or p["exceptionDetails"]["text"])
            elif e["method"] == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
                found.append(" ".join(str(a.get("value", a.get("description"))) for a in p["args"]))
            elif e["method"] == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
                found.append(p["entry"]["text"])
        return found
