"""The control socket as a user's program sees it: the example of docs/control-socket.md, word for word, and the example
client. Arguments: the control_server program, the page."""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import control_client  # noqa: E402

SERVER, PAGE = sys.argv[1:3]
CLIENT = control_client.__file__


class Server:
    """A guard's socket in a folder of its own."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="afz-control-")
        self.path = os.path.join(self.folder.name, "run.sock")
        self.process = subprocess.Popen([SERVER, self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.expect("listening")
        return self

    def expect(self, line):
        heard = self.process.stdout.readline().rstrip("\n")
        assert heard == line, f"{heard!r} instead of {line!r}"

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(30) == 0
        self.process.stdout.close()
        assert os.listdir(self.folder.name) == [], "the socket was left behind"
        self.folder.cleanup()


def run(*argv, **env):
    return subprocess.run([sys.executable, *argv], env={**os.environ, **env}, capture_output=True, text=True, timeout=60)


def test_page():
    """Ten lines and a save() of the reader's are all that a program needs."""
    with open(PAGE, encoding="utf-8") as page:
        blocks = re.findall(r"```python\n(.*?)```", page.read(), re.S)
    assert len(blocks) == 1
    lines = [line for line in blocks[0].splitlines() if line.strip()]
    assert len(lines) <= 12, len(lines)
    with Server() as server:
        program = "def save():\n    return '/checkpoints/step 900.pt'\n\n" + blocks[0]
        agent = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "ANTIFREEZE_SOCKET": server.path})
        heard = [server.process.stdout.readline() for _ in range(2)]
        if heard[1].startswith("saving"):  # all of it may come within one turn
            heard.append(server.process.stdout.readline())
        assert heard[-1] == "saved: saved to /checkpoints/step 900.pt\n", heard
    assert agent.wait(30) == 0


def test_client():
    with Server() as server:
        asked = run(CLIENT, server.path, "status")
        assert (asked.returncode, asked.stdout) == (0, 'status {"run":"brave-otter","need_bytes":4096}\n'), asked
        asked = run(CLIENT, "-", "set budget 1073741824", ANTIFREEZE_SOCKET=server.path)
        assert (asked.returncode, asked.stdout) == (0, "ok budget 1073741824\n"), asked
        asked = run(CLIENT, server.path, "hello old 9")
        assert (asked.returncode, asked.stdout) == (1, "error this guard speaks version 1 only\n"), asked


def test_agent():
    for name, outcome in (("model.pt", "saved"), ("missing/model.pt", "cannot")):
        with Server() as server, tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, name)
            agent = subprocess.Popen([sys.executable, CLIENT, server.path, "--agent", file], stdout=subprocess.PIPE, text=True)
            while not (line := server.process.stdout.readline()).startswith(outcome):
                assert line.startswith(("asked", "saving")), line
            if outcome == "saved":
                assert line == f"saved: saved to {file}\n", line
                assert agent.communicate(timeout=30)[0] == "budget it needs more than it may use\n"
                assert os.path.exists(file)
            else:
                assert "No such file or directory" in line, line
                server.process.stdin.close()
                assert agent.communicate(timeout=30)[0] == "\n"


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "ok")
