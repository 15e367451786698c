"""What `antifreeze convert` runs for Parquet: pyarrow reads it here, and all else is done in C, as for other formats (convert/convert.h).

--details has what Loader's has, and {"columns": [...]}, as Loader's columns=. --labels is a column, or a file.
"""
import ctypes
import json
import os
import signal
import sys

from . import parquet
from .native import LoaderError

BAD = 2  # AFZ_END_BAD
WORDS = (("columns=[...]", """--details '{"columns": [...]}'"""), ("details=", "--details "),
         ("of Parquet these are", 'of Parquet these are "columns",'))  # Loader's, and those of the command


def main(library, *arguments):
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else: nohup, or a shell's &
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # as without Python: it ends at once, until C has something to say of it
    told = dict(argument.split("=", 1) for argument in arguments)
    try:
        source = open_source(told)
    except (OSError, ValueError) as error:
        sys.exit(refuse(str(error)))
    except (TypeError, AttributeError, KeyError) as error:  # of what --details has in the place of a name
        if not told.get("details"):
            raise
        sys.exit(refuse(f"details={told['details']}: {error}"))
    packed = [b"antifreeze-convert", *(os.fsencode(f"{name}={value}") for name, value in told.items())]
    run = ctypes.CDLL(library).afz_convert_main
    run.argtypes = ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_void_p
    sys.exit(run(len(packed), (ctypes.c_char_p * len(packed))(*packed), source.address()))


def open_source(told):
    """What is to be read. told becomes what C is told: of columns it knows nothing, but a copy is gone on with only if they were the same."""
    try:
        __import__("numpy")
        parquet.import_pyarrow()
    except (LoaderError, ImportError) as error:
        raise LoaderError(f"Parquet is read by pyarrow and NumPy, which {sys.executable} has not ({error}): install them there, or name "
                          "another Python, --python PATH") from None
    if not os.path.exists(told["source"]):
        raise LoaderError(f"{told['source']}: there is no such file or folder")
    try:
        details = json.loads(told.get("details") or "{}")
    except ValueError as error:
        raise ValueError(f"details={told['details']}: that is no JSON ({error})") from None
    if not isinstance(details, dict):
        raise ValueError(f"details={told['details']}: an object, in JSON")
    columns, labels = details.pop("columns", None), told.pop("labels", None)
    paths, source = parquet.open_source(told["source"], labels, columns, "parquet", details)
    if paths[1:]:
        told["labels"] = paths[1]
    told["details"] = json.dumps({"columns": columns, "labels": None if paths[1:] else labels, **details}, sort_keys=True)
    told.update(format="parquet", threads=source.threads)
    return source


def refuse(text):
    for loaders, ours in WORDS:
        text = text.replace(loaders, ours)
    print("antifreeze: " + text.replace("\n", " "), file=sys.stderr)
    return BAD
