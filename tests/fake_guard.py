"""A guard's end of the control socket, for tests of the agent alone: it hears lines, and says what the test has it say.

    with FakeGuard(folder) as guard:
        guard.ask("checkpoint 1 10000")      # said to who comes, once it has said hello
        subprocess.run(..., env={**os.environ, **guard.env})
        guard.lines                          # all that was heard, of all callers
"""
import os
import socket
import threading


class FakeGuard:
    def __init__(self, folder):
        self.path = os.path.join(folder, "guard.sock")
        self.env = {"ANTIFREEZE_SOCKET": self.path, "ANTIFREEZE_RUN": "afz-test"}
        self.lines, self.callers = [], 0
        self._asked, self._open = [], []
        self._change = threading.Condition()

    def __enter__(self):
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listening.bind(self.path)
        self._listening.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.go_away()

    def ask(self, line):
        """To all who can do it, now or when they come."""
        with self._change:
            self._asked.append(line)
            for caller in self._open:
                self._tell(caller, line)

    def wait_for(self, word, timeout_s=60):
        """The first line that begins so; "": none came in time."""
        with self._change:
            self._change.wait_for(lambda: any(line.startswith(word) for line in self.lines), timeout_s)
            return next((line for line in self.lines if line.startswith(word)), "")

    def go_away(self):
        with self._change:
            self._listening.close()
            for caller in self._open:
                caller.close()
            self._open = []
        if os.path.exists(self.path):
            os.remove(self.path)

    def _accept(self):
        while True:
            try:
                caller, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller):
        self.callers += 1
        greeted = False
        while True:
            try:
                line = caller.recv(2048).decode()
            except ConnectionResetError:  # said once, of one that left without hearing all, ahead of its last words
                continue
            except OSError:
                return
            if not line:
                return
            with self._change:
                self.lines.append(line)
                self._change.notify_all()
                if line.startswith("hello "):
                    self._tell(caller, "welcome 1 afz-test")
                    if not greeted:
                        self._open.append(caller)
                        greeted = True
                    if len(line.split()) > 3:  # it can do something
                        while self._asked:
                            self._tell(caller, self._asked.pop(0))

    @staticmethod
    def _tell(caller, line):
        try:
            caller.send(line.encode())
        except OSError:
            pass
