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


is_advice_due = is_wanted()  # to a loop of the program's own


def is_worth(device=None):
    """Whether bfloat16 gains here. Asked when the program is about to use the device itself: CUDA must not be woken earlier."""
    return judged(capability(device))


def capability(device):
    """Of the GPU; None without one."""
    cuda = sys.modules["torch"].cuda
    return cuda.get_device_capability() if device != "cpu" and cuda.is_available() else None


def is_worth_keras():
    """The same for Keras, before a layer is made; by what TensorFlow knows of its GPUs without waking them."""
    name = sys.modules["keras.src.backend"].backend()
    if name == "torch":
        return is_worth()
    if name != "tensorflow":
        return say("refuse", f"--amp: Keras runs on {name} here, of which we do not know what it gains: nothing is changed")
    config = sys.modules["tensorflow"].config
    gpus = config.list_physical_devices("GPU")
    return judged(config.experimental.get_device_details(gpus[0]).get("compute_capability", (0, 0)) if gpus else None)


def advise(model):
    """A loop of the program's own is not ours to change, but it can be said what to write. Once, when its model is called: then it is
    seen whether that is there already."""
    global is_advice_due
    is_advice_due = False
    torch = sys.modules["torch"]
    weight = next(model.parameters())
    device = weight.device.type
    if _told or weight.dtype != torch.float32 or torch.is_autocast_enabled(device):
        return
    if judged(capability(device), is_done=False):
        say("note", f'--amp: this training loop is the program\'s own, so it is yours to write: with torch.autocast("{device}", '
            "dtype=torch.bfloat16): around the call of the model and its loss. What is kept of a pass takes half then, weights and "
            "optimizer as before")


def judged(capability, is_done=True):
    """capability: of the GPU, None without one. is_done: by us, if it gains."""
    if capability[0] >= AMPERE if capability else cpu_flags() & set(FLAGS):
        if not capability and dies_of_it():
            return say("refuse", "--amp: this processor promises bfloat16 and dies of it (a virtual machine that has no AMX, say): nothing is changed")
        return not is_done or \
            say("note", "--amp: computing in bfloat16. What is kept of a pass takes half, weights and optimizer as before", True)
    if capability:
        return say("refuse", "--amp: this GPU does not compute in bfloat16 (Ampere is the first that does), so nothing is changed")
    return say("refuse", "--amp: this processor does not compute in bfloat16 (no avx512_bf16, no AMX), it would only be slower: "
               "nothing is changed")


def dies_of_it():
    """Tried in a process of its own: what a virtual machine shows of its processor is not always what it lets one use, and the
    program would end by an illegal instruction."""
    import signal
    import subprocess
    trial = TRIALS["torch" if "torch" in sys.modules else "tensorflow"]
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("ANTIFREEZE")}
    try:
        tried = subprocess.run([sys.executable, "-c", trial], env={**env, "CUDA_VISIBLE_DEVICES": ""}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=TRIAL_S, check=False)
        return tried.returncode == -signal.SIGILL
    except (OSError, subprocess.SubprocessError):
        return False


TRIAL_S = 60
TRIALS = {"torch": "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); torch.nn.functional.linear(a, a)",
          "tensorflow": "import tensorflow as tf; a = tf.ones((64, 64), tf.bfloat16); tf.matmul(a, a)"}


def cpu_flags(path="/proc/cpuinfo"):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith(("flags", "Features")):
                    return set(line.partition(":")[2].split())
    except OSError:
        pass
    return set()


def say(kind, sentence, result=False):
    if sentence not in _told:
        _told.add(sentence)
        from .. import talk
        talk.event(kind, sentence)
    return result


def tell_saved(model):
    """What a Keras model keeps of a pass for the way back, by what its layers give. Of one that is not a graph it is not known."""
    count = kept_by(model)
    if count:
        say("note", f"--amp: what the layers give, and is kept for the way back, takes {count * 2 / 1e6:.3g} MB a sample instead of "
            f"{count * 4 / 1e6:.3g}; weights and optimizer as before")


def kept_by(model):
    """Numbers a sample, of those that are half as large now."""
    count = 0
    layers = getattr(getattr(model, "_functional", None) or model, "_nodes_by_depth", {})
    for node in (node for nodes in layers.values() for node in nodes):
        inside = kept_by(node.operation)
        count += inside
        if not inside and not node.is_input and getattr(node.operation, "compute_dtype", "") == "bfloat16":
            for output in node.outputs:
                size = 1
                for side in output.shape[1:]:
                    size *= side or 1
                count += size
    return count
