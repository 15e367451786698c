#!/usr/bin/python3
"""The report as people meet it: the command, and the page in a browser where there is one.

    test_report.py ANTIFREEZE FAKE_REPORT
    test_report.py ANTIFREEZE FAKE_REPORT --shots FOLDER   also takes pictures of the pages, to look at

Without Chromium the checks in the browser are left out, and that is said.
"""
import base64
import json
import os
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

from scenario import Checks, World

ANTIFREEZE, FAKE_REPORT = map(os.path.abspath, sys.argv[1:3])
ALL = Checks(deadline=90)
check, DEADLINE = ALL.check, ALL.deadline
SHOTS = sys.argv[4] if sys.argv[3:4] == ["--shots"] else None
MOST = 1_000_000  # bytes of a page
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


# ---- the command ----

class Runs(World):
    def call(self, *args, **kw):
        return super().call(ANTIFREEZE, *args, **kw)


def one_line(what, r, word):
    check(what, r.returncode == 2 and r.stdout == "" and r.stderr.count("\n") == 1 and word in r.stderr,
          f"{r.returncode} {r.stdout[:200]!r} {r.stderr!r}")


def test_command():
    with Runs() as w:
        one_line("no runs", w.call("report"), "no run yet")
        hostile = "</script><b>'\"&"
        run = w.call("run", "--run-dir", w.at("mine"), "--", "/bin/sh", "-c", "sleep .4", hostile)
        check("the run", run.returncode == 0, run)
        made = w.call("report")
        path = made.stdout.strip()
        check("it says where", made.returncode == 0 and os.path.samefile(path, w.at("mine/report.html")), made)
        with open(path, encoding="utf-8") as file:
            page = file.read()
        check("0600", stat.S_IMODE(os.stat(path).st_mode) == 0o600)
        check("a whole page", page.startswith("<!DOCTYPE html>") and page.endswith("</html>\n") and len(page) < MOST)
        check("the command is in it, harmless", "sleep .4 &lt;/script&gt;&lt;b&gt;&#39;&quot;&amp;" in page and
              hostile not in page)
        why = json.loads(w.call("why", "--json").stdout)
        check("the verdict of why", why["verdicts"][0]["id"] in page and why["run"] in page, why)
        check("it was recorded", "Memory of the job" in page and "There is no recording" not in page)
        check("nothing is left of the writing", not [n for n in os.listdir(w.at("mine")) if n.endswith(".new")])
        check("on stdout", w.call("report", "-o", "-").stdout.startswith("<!DOCTYPE html>"))
        other = w.call("report", w.at("mine"), "-o", w.at("page.html"))
        check("elsewhere", other.stdout == w.at("page.html") + "\n" and os.path.getsize(w.at("page.html")) > 10000, other)
        again = w.call("report", "-o", "-").stdout
        check("the same each time", again == w.call("report", "-o", "-").stdout)
        one_line("a folder that is not there", w.call("report", "-o", "/nonexistent/x/y"), "/nonexistent/x/y")
        one_line("no name", w.call("report", "-o", ""), "-o")
        one_line("no such run", w.call("report", "nonsense"), "no run 'nonsense'")
        full = w.call("report", "-o", "/dev/full")
        check("a full disk is told", full.returncode == 2 and "writing /dev/full" in full.stderr, full)
        with open(w.at("mine/flight.afz"), "wb") as file:
            file.write(b"no recording at all")
        broken = w.call("report")
        check("a broken recording: one line, and the verdict all the same", broken.returncode == 0 and
              broken.stderr.count("\n") == 1 and why["verdicts"][0]["id"] in open(path, encoding="utf-8").read(), broken)


# ---- the page, in a browser ----

class Browser:
    """Chromium without a window, spoken to through two pipes (its own protocol, no library)."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="afz-")
        ours, theirs = os.pipe(), os.pipe()  # what it reads, what it writes
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe",
                   f"--user-data-dir={self.folder}", "about:blank"]

        def put_in_place():
            for fd, at in ((ours[0], 13), (theirs[1], 14)):
                os.dup2(fd, at)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self.process = subprocess.Popen(command, preexec_fn=put_in_place, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(ours[0])
        os.close(theirs[1])
        self.to, self.of = ours[1], theirs[0]
        self.buffer, self.number, self.session, self.events = b"", 0, None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def close(self):
        os.close(self.to)
        os.close(self.of)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # a session of its own, started above
        except ProcessLookupError:
            pass
        self.process.wait(DEADLINE)
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self):
        end = time.monotonic() + DEADLINE
        while b"\0" not in self.buffer:
            if not select.select([self.of], [], [], max(end - time.monotonic(), 0))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.of, 1 << 20)
            if not more:
                raise EOFError("the browser ended")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path, width=1280, height=900, dark=False, scripts=True):
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", media="",
                 features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.ask("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.ask("Page.navigate", url="file://" + path)
        end = time.monotonic() + DEADLINE
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.message())
            if time.monotonic() > end:
                raise TimeoutError(path)

    def value(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def complaints(self):
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                found.append(json.dumps(params)[:400])
        return found

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def press(self, key):
        code = {"+": "Equal", "0": "Digit0"}.get(key, key)
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=code)

    def shot(self, name):
        if SHOTS:
            size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
            data = self.ask("Page.captureScreenshot", captureBeyondViewport=True,
                            clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})
            with open(os.path.join(SHOTS, name), "wb") as file:
                file.write(base64.b64decode(data["data"]))

    def pdf(self, name):
        data = base64.b64decode(self.ask("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])
        if SHOTS:
            with open(os.path.join(SHOTS, name), "wb") as file:
                file.write(data)
        return data


PLOT = 'document.querySelector("svg.plot")'
BOX = f'JSON.parse(JSON.stringify((e => ({{x: e.x, y: e.y, w: e.width, h: e.height}}))({PLOT}.getBoundingClientRect())))'
VIEW = f'{PLOT}.querySelector("svg.paths").getAttribute("viewBox")'
NOW = 'document.querySelector("tr[data-s=memory-0] .now").textContent'


def bytes_of(text):
    number, unit = re.fullmatch(r"([\d.]+) (B|KB|MB|GB|TB)", text).groups()
    return float(number) * 1024 ** ("B", "KB", "MB", "GB", "TB").index(unit)


def check_hover(browser):
    browser.value(f'{PLOT}.scrollIntoView()')
    box = browser.value(BOX)
    y = box["y"] + box["h"] / 2
    seen = []
    for part in (.05, .5, .9):
        browser.mouse("mouseMoved", box["x"] + box["w"] * part, y)
        seen.append(browser.value(NOW))
    check("hover tells the values", all(seen) and bytes_of(seen[0]) < bytes_of(seen[1]) < bytes_of(seen[2]), seen)
    check("hover: 2.5 GB after 15 s", abs(bytes_of(seen[1]) / 2 ** 30 - 2.5) < .2, seen)
    browser.mouse("mouseMoved", box["x"] + box["w"] / 2, y)
    clock = browser.value('document.getElementById("clock").textContent')
    check("and when", clock.startswith("after 15 s"), clock)
    browser.mouse("mouseMoved", box["x"] + box["w"] / 2, box["y"] - 400 if box["y"] > 400 else 1)
    return box, y


def check_zoom(browser, box, y):
    whole = browser.value(VIEW)
    left, right = box["x"] + box["w"] * .25, box["x"] + box["w"] * .5
    browser.mouse("mouseMoved", left, y)
    browser.mouse("mousePressed", left, y, button="left", clickCount=1)
    browser.mouse("mouseMoved", (left + right) / 2, y, button="left", buttons=1)
    browser.mouse("mouseMoved", right, y, button="left", buttons=1)
    browser.mouse("mouseReleased", right, y, button="left", clickCount=1)
    x, _, width, _ = map(float, browser.value(VIEW).split())
    check("drag zooms", abs(x - 2500) < 60 and abs(width - 2500) < 60, (x, width))
    ticks = browser.value(f'[...{PLOT}.querySelectorAll(".xg text")].map(e => e.textContent).join()')
    check("the axis follows", ticks == "8 s,9 s,10 s,11 s,12 s,13 s,14 s", ticks)
    check("what is outside goes", browser.value('[...document.querySelectorAll(".lane .at")].every(e => '
                                                'e.style.display === "none")'))
    browser.shot("zoomed.png")
    browser.mouse("mousePressed", left, y, button="left", clickCount=1)
    browser.mouse("mouseReleased", left, y, button="left", clickCount=1)
    browser.mouse("mousePressed", left, y, button="left", clickCount=2)
    browser.mouse("mouseReleased", left, y, button="left", clickCount=2)
    check("a double click goes back", browser.value(VIEW) == whole, browser.value(VIEW))
    browser.value('document.getElementById("look").click()')
    x, _, width, _ = map(float, browser.value(VIEW).split())
    check("to where the verdict looks", 500 < x < 1700 and 7500 < width < 9900, (x, width))
    browser.value('document.getElementById("reset").click()')
    check("and back by the button", browser.value(VIEW) == whole)


def until(probe):
    """The page draws in its own time."""
    end = time.monotonic() + 10
    while not probe() and time.monotonic() < end:
        time.sleep(.02)
    return probe()


def check_keys(browser):
    browser.value(f'{PLOT}.focus()')
    whole = browser.value(VIEW)
    browser.press("ArrowRight")
    first = until(lambda: browser.value(NOW))
    browser.press("End")
    check("keys move the cursor", first and until(lambda: browser.value(NOW) != first), first)
    browser.press("ArrowLeft")
    browser.press("+")
    check("and zoom", until(lambda: browser.value(VIEW) != whole))
    browser.press("0")
    check("and go back", browser.value(VIEW) == whole)


def check_switches(browser):
    drawn = 'getComputedStyle(document.getElementById("memory-0")).display'
    button = 'document.querySelector("tr[data-s=memory-0] button")'
    browser.value(f'{button}.click()')
    check("a line can be put out", browser.value(drawn) == "none" and
          browser.value(f'{button}.getAttribute("aria-pressed")') == "false")
    browser.value(f'{button}.click()')
    check("and lit again", browser.value(drawn) != "none")


def check_flame(browser):
    """Zoom by click and by keys, search, and all frames."""
    box = '[...document.querySelectorAll("svg.flame")[0].children].find(e => e.textContent.startsWith(%s))'
    load, wide = box % json.dumps("data.py:41 in load()"), box % json.dumps("train.py:203")
    words = 'document.getElementById("flame-at").textContent'
    width = 'Math.round(parseFloat(%s.getAttribute("width")) * 100) / 100'
    before = browser.value(width % load)
    browser.value(f'{load}.dispatchEvent(new MouseEvent("click", {{bubbles: true}}))')
    check("flame: a click enlarges", browser.value(width % load) == 100 and before < 10, before)
    check("flame: what lies beside goes", browser.value(f'getComputedStyle({box % json.dumps("everywhere else")}).display') == "none")
    check("flame: it says what it is", browser.value(words).startswith("data.py:41 in load() \u2014 300 MB"), browser.value(words))
    browser.value('document.getElementById("flame-reset").click()')
    check("flame: and back", browser.value(width % load) == before, browser.value(width % load))
    browser.value('document.querySelector("svg.flame").focus()')
    for key in ("Home", "ArrowDown", "ArrowRight"):
        browser.press(key)
    check("flame: arrows go along a row", until(lambda: browser.value(words).startswith("everywhere else")), browser.value(words))
    browser.press("ArrowLeft")
    browser.press("Enter")
    check("flame: Enter enlarges", until(lambda: browser.value(width % wide) == 100), browser.value(width % wide))
    browser.press("Escape")
    check("flame: Escape goes back", until(lambda: browser.value(width % load) == before))
    seek = 'document.getElementById("flame-find").value = %s;' \
           'document.getElementById("flame-find").dispatchEvent(new Event("input"))'
    browser.value(seek % '"STEP"')
    check("flame: search finds, and says how much", browser.value(words) == "1 box, 79 % of the memory", browser.value(words))
    browser.value(seek % '"nobody"')
    check("flame: or that there is nothing", browser.value(words) == "nothing is called so", browser.value(words))
    browser.value(seek % '""')
    whole = 'document.querySelectorAll("svg.flame")[1].getClientRects().length'
    check("flame: the interpreter is folded away", browser.value(whole) == 0)
    browser.value('document.getElementById("flame-inside").click()')
    check("flame: all frames", browser.value(whole) == 1 and
          browser.value('document.querySelectorAll("svg.flame")[0].getClientRects().length') == 0)
    browser.value('document.getElementById("flame-inside").click()')
    check("lines over time: hover tells what each held", browser.value(
        '[...document.querySelectorAll("tr[data-s^=lines-]")].length') == 4)


def check_quiet(browser, what):
    check(f"{what}: no complaints", browser.complaints() == [], browser.complaints())
    outside = [url for url in browser.requests() if not url.startswith("file://")]
    check(f"{what}: asks nobody", outside == [], outside)


def check_looks(browser, pages):
    for name, width, dark in (("leak", 1280, False), ("leak", 1280, True), ("leak", 390, False), ("leak", 820, True),
                              ("day", 1280, False), ("day", 1600, True), ("nothing", 1280, False), ("hostile", 1280, False),
                              ("hostile", 400, True), ("one", 400, False), ("many", 1280, True), ("many", 400, False)):
        browser.open(pages[name], width=width, dark=dark)
        what = f"{name}-{width}-{'dark' if dark else 'light'}"
        wide = browser.value("document.documentElement.scrollWidth")
        check(f"{what}: nothing sticks out", wide <= width, wide)
        check_quiet(browser, what)
        browser.shot(f"{what}.png")
    browser.open(pages["leak"])
    pdf = browser.pdf("leak.pdf")
    check("it prints", pdf.startswith(b"%PDF") and len(pdf) > 20000, len(pdf))


def check_without_scripts(browser, page):
    browser.open(page, scripts=False)
    browser.ask("Emulation.setScriptExecutionDisabled", value=False)
    text = browser.value('document.body.innerText')
    for words in ("The program keeps what it no longer needs", "What to change", "loss.detach()", "Time line"):
        check(f"without JavaScript: {words}", words in text, text[:300])
    check("without JavaScript: lines are drawn", browser.value(f'{PLOT}.querySelectorAll("path").length') >= 3)
    check("without JavaScript: the flame graph is there", browser.value(
        '[...document.querySelector("svg.flame").children].filter(e => e.querySelector("text")).length') >= 5)
    check("without JavaScript: no dead input", browser.value('document.getElementById("flame-find").offsetParent === null'))
    check("without JavaScript: no dead buttons", browser.value(
        '[...document.querySelectorAll("button")].every(b => b.offsetParent === null)'))


def test_browser(program):
    folder = tempfile.mkdtemp(prefix="afz-")
    pages = {}
    for name in ("leak", "day", "hostile", "nothing", "one", "many"):
        pages[name] = os.path.join(folder, name + ".html")
        with open(pages[name], "wb") as file:
            subprocess.run([FAKE_REPORT, name], stdout=file, timeout=DEADLINE, check=True)
        check(f"{name}: below 1 MB", os.path.getsize(pages[name]) < MOST, os.path.getsize(pages[name]))
    browser = Browser(program)
    try:
        browser.open(pages["leak"])
        box, y = check_hover(browser)
        check_zoom(browser, box, y)
        check_keys(browser)
        check_switches(browser)
        check_flame(browser)
        check_quiet(browser, "in use")
        check_looks(browser, pages)
        check_without_scripts(browser, pages["leak"])
        check("hostile names run nothing", browser.open(pages["hostile"]) is None and
              browser.value('document.querySelectorAll("img, b:not(.events b)").length') == 0)
    finally:
        browser.close()
        shutil.rmtree(folder, ignore_errors=True)


test_command()
PROGRAM = next(filter(None, map(shutil.which, BROWSERS)), None)
if PROGRAM:
    test_browser(PROGRAM)
else:
    print("there is no Chromium here: the page itself was not looked at (Debian: chromium)")
ALL.finish()
