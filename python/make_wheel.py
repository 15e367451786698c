"""Makes the wheel: `pip install ./python` needs nothing but pip and no network. (A build backend as of PEP 517.)

The package, the module that lets the agent in, and the .pth that calls it when Python starts; all of them plain files. The wheel
with the program itself is made by tools/wheel, of these and what was built.
"""
import base64
import glob
import hashlib
import os
import re
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "antifreeze"
TAG = "py3-none-any"


def version():
    with open(os.path.join(HERE, NAME, "__init__.py"), encoding="utf-8") as file:
        return re.search(r'^__version__ = "(.+)"$', file.read(), re.M).group(1)


def description():
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as file:
        return re.search(r'^description = "(.+)"$', file.read(), re.M).group(1)


def info():
    return f"{NAME}-{version()}.dist-info"


def contents(tag=TAG, more=()):
    """Name in the wheel to bytes; with `more` of them."""
    files = {}
    names = sorted(name for name in glob.glob(NAME + "/**/*.py", root_dir=HERE, recursive=True) if not name.startswith(f"{NAME}/enter/"))
    for name in [*names, "_antifreeze_enter.py", "antifreeze.pth"]:
        with open(os.path.join(HERE, name), "rb") as file:
            files[name] = file.read()
    files[info() + "/METADATA"] = (f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\nSummary: {description()}\n"
                                 "Requires-Python: >=3.8\n").encode()
    files[info() + "/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: antifreeze\nRoot-Is-Purelib: {str(tag == TAG).lower()}\n"
                                f"Tag: {tag}\n").encode()
    files.update(more)
    record = info() + "/RECORD"
    rows = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    files[record] = "".join([*rows, f"{record},,\n"]).encode()
    return files


def write(folder, tag=TAG, more=(), programs=()):
    """The wheel's name. `programs` are those of `more` that can be run."""
    name = f"{NAME}-{version()}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in contents(tag, more).items():
            entry = zipfile.ZipInfo(path)  # without a date: the same bytes each time
            entry.external_attr = (0o100755 if path in programs else 0o100644) << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write(wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("only wheels are made")


def get_requires_for_build_wheel(config_settings=None):
    return []
