"""A headless Chromium, driven over its DevTools protocol through a pipe: the standard library is all it needs."""

import base64
import json
import os
import shutil
import subprocess
import tempfile

FLAGS = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions",
         "--disable-background-networking", "--hide-scrollbars", "--mute-audio", "--disable-dev-shm-usage"]


def find_chromium():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()
        descriptors = f"exec 3<&{to_read} 4>&{to_write} \"$@\""
        command = ["bash", "-c", descriptors, "browser", program, *FLAGS, f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.rest, self.count, self.session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        self.profile.cleanup()

    def message(self):
        while b"\0" not in self.rest:
            some = os.read(self.back, 1 << 20)
            if not some:
                raise RuntimeError("the browser ended")
            self.rest += some
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.count += 1
        request = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.count:
                break
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def load(self, url):
        loader = self.call("Page.navigate", url=url)["loaderId"]
        is_load = lambda e: e.get("method") == "Page.lifecycleEvent" and e["params"]["name"] == "load" and e["params"]["loaderId"] == loader
        while not any(map(is_load, self.events)):
            self.events.append(self.message())

    def open(self, url):
        """Loads the page anew; what happened since is in events."""
        self.load("about:blank")
        self.events.clear()
        self.load(url)

    def run(self, script):
        """The value of an expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(f"{script}: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def complaints(self):
        """Errors, warnings and exceptions of the page."""
        self.run("new Promise((done) => setTimeout(done, 50))")
        kinds = {"Runtime.exceptionThrown": lambda p: p["exceptionDetails"].get("exception", {}).get("description", "exception"),
                 "Log.entryAdded": lambda p: p["entry"]["text"],
                 "Runtime.consoleAPICalled": lambda p: " ".join(str(a.get("value", a.get("description"))) for a in p["args"])}
        return [kinds[e["method"]](e["params"]) for e in self.events if e.get("method") in kinds]

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def emulate(self, width=1280, height=900, scheme="light", media="", scale=1, reduced_motion="no-preference"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme},
                                                                       {"name": "prefers-reduced-motion", "value": reduced_motion}])

    def screenshot(self, path, whole=False):
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole, **({"clip": self.page_clip()} if whole else {}))
        path.write_bytes(base64.b64decode(shot["data"]))

    def page_clip(self):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def print_pdf(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]))
