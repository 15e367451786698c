"""What the guard lets this run do, as its environment says."""
import os


def is_adapting():
    """Whether this run may be changed in order to go on."""
    return os.environ.get("ANTIFREEZE_POLICY") == "adapt"


def is_inexact_allowed():
    """Whether also where the results are not the same."""
    return os.environ.get("ANTIFREEZE_INEXACT") == "1"


def lean():
    """How often to halve a batch from the start, as an earlier attempt has learned."""
    text = os.environ.get("ANTIFREEZE_LEAN", "") if is_adapting() else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 3 else 0
