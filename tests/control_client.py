"""A client of the control socket (docs/control-socket.md), for tests and as an example.

    control_client.py SOCKET LINE                 sends one line, prints the answer
    control_client.py SOCKET --agent FILE         an agent: writes FILE whenever it is asked to save, until the guard closes

The socket is $ANTIFREEZE_SOCKET where SOCKET is "-". Needs nothing but Python's own modules.
"""
import os
import socket
import sys

VERSION = 1


class Guard:
    """One connection. Lines are text, without a newline."""

    def __init__(self, path, timeout_s=30):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(timeout_s)
        self.socket.connect(path)

    def tell(self, line):
        self.socket.send(line.encode())

    def hear(self):
        """The next line; "" when the guard has closed."""
        return self.socket.recv(1024).decode()

    def ask(self, line):
        self.tell(line)
        return self.hear()

    def close(self):
        self.socket.close()


def serve(guard, save, name="control_client"):
    """Answers every request to save with what save() returns: a path. What it raises is the reason why it cannot. Returns
    the guard's word on stopping, or "" when it just closed."""
    welcome = guard.ask(f"hello {name} {VERSION} checkpoint")
    if not welcome.startswith("welcome "):
        raise ConnectionRefusedError(welcome)
    while line := guard.hear():
        word, _, rest = line.partition(" ")
        if word == "stop":
            return rest
        if word != "checkpoint":
            continue
        number = rest.split()[0]
        guard.tell(f"saving {number}")
        try:
            guard.tell(f"saved {number} {save()}")
        except OSError as error:
            guard.tell(f"cannot {number} {error}")
    return ""


def main(argv):
    if len(argv) not in (3, 4) or (len(argv) == 4) != (argv[2] == "--agent"):
        sys.exit(__doc__)
    guard = Guard(os.environ["ANTIFREEZE_SOCKET"] if argv[1] == "-" else argv[1])
    if argv[2] != "--agent":
        answer = guard.ask(argv[2])
        print(answer)
        sys.exit(0 if answer.split(" ")[0] in ("ok", "status", "welcome") else 1)

    def save():
        with open(argv[3], "w", encoding="utf-8") as file:
            file.write("saved\n")
        return os.path.abspath(argv[3])

    print(serve(guard, save))


if __name__ == "__main__":
    main(sys.argv)
