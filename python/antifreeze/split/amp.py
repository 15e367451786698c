"""Mixed precision on request (--amp), where the hardware gains by it: bfloat16 from Ampere on, and on processors that compute in
it. It halves what is kept of a pass for the way back, not the weights and not the optimizer's state. float16 is not chosen for
anybody: it needs its losses scaled, and some models do not stand it.
"""
import os
import sys

AMPERE = 8  # compute capability: the first that computes in bfloat16
FLAGS = ("avx512_bf16", "amx_bf16", "bf16")  # of /proc/cpuinfo; the last is arm64's

_told = set()


def is_wanted():
    return os.environ.get("ANTIFREEZE_AMP") == "1"


def is_worth(device=None):
    """Whether bfloat16 gains here. Asked when the program is about to use the device itself: CUDA must not be woken earlier."""
    torch = sys.modules["torch"]
    if device != "cpu" and torch.cuda.is_available():
        major, _ = torch.cuda.get_device_capability()
        if major >= AMPERE:
            return say("note", "--amp: computing in bfloat16. What is kept of a pass takes half, weights and optimizer as before") or True
        return say("refuse", "--amp: this GPU does not compute in bfloat16 (Ampere is the first that does), so nothing is changed") or False
    if cpu_flags() & set(FLAGS):
        return say("note", "--amp: computing in bfloat16. What is kept of a pass takes half, weights and optimizer as before") or True
    return say("refuse", "--amp: this processor does not compute in bfloat16 (no avx512_bf16, no AMX), it would only be slower: "
               "nothing is changed") or False


def cpu_flags(path="/proc/cpuinfo"):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith(("flags", "Features")):
                    return set(line.partition(":")[2].split())
    except OSError:
        pass
    return set()


def say(kind, sentence):
    if sentence not in _told:
        _told.add(sentence)
        from .. import talk
        talk.event(kind, sentence)
