"""A bare Debian to try things in: made once from the distribution's mirror, copied for each trial, removed after it.

    base = make_base(folder + "/base", "git,make")
    with Root(base, folder + "/root") as root:
        r = root.call("make", "demo", user="root")
"""
import os
import re
import shutil
import subprocess

USER = "tester"

# In a mount namespace of its own: what is mounted is gone with it, however it ends. A machine's root is a mount.
ENTER = """
mount --bind "$1" "$1"
for place in proc sys dev; do mount --rbind "/$place" "$1/$place"; done
root=$1 user=$2 home=$3; shift 3
exec chroot --userspec="$user" "$root" env -i USER="$user" HOME="$home" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LC_ALL=C.UTF-8 TERM=xterm sh -c 'cd && exec "$@"' sh "$@"
"""


def can_have_one():
    """To make one takes root and mounts of one's own."""
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0


def this_suite():
    with open("/etc/os-release", encoding="utf-8") as file:
        return re.search(r"^VERSION_CODENAME=(\w+)", file.read(), re.M)[1]


def make_base(base, packages, suite=None, options=()):
    """Once: it takes a minute or more. `base` again."""
    if not os.path.exists(base + "/home/" + USER):
        shutil.rmtree(base, ignore_errors=True)
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--include=" + packages, *options,
                        f"--customize-hook=chroot \"$1\" useradd -m -s /bin/bash {USER}", suite or this_suite(), base], check=True)
    return base


class Root:
    """A copy of the bare Debian, with this machine's name service."""

    def __init__(self, base, path):
        self.path = path
        shutil.rmtree(path, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", base, path], check=True)
        for file in "/etc/resolv.conf", "/etc/hosts":
            shutil.copy(file, path + file)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def command(self, *command, user=USER):
        """What enters it as that user, in the home folder."""
        return ["unshare", "--mount", "sh", "-c", ENTER, "sh", self.path, user, "/root" if user == "root" else "/home/" + user, *command]

    def call(self, *command, user=USER, timeout=600):
        return subprocess.run(self.command(*command, user=user), capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=timeout, check=False)

    def bring(self, path):
        shutil.copy(path, self.path + "/tmp")
        return "/tmp/" + os.path.basename(path)
