"""A fault of the GPU driver, as it reports one: after 10 s the GPU has fallen off the bus (Xid 79), and the next call fails."""
import time

import gpu
import training

FAULT_S = 10
gpu.play(FAULT_S, "gpu 0 xid 79")
begin = time.monotonic()


def kernel():
    """What torch says then."""
    if time.monotonic() - begin > FAULT_S + 4:
        raise RuntimeError("CUDA error: unspecified launch failure")


training.train(60, kernel)
