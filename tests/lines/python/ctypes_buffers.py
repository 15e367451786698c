"""Memory from the C library by ctypes, which nobody gives back."""
import ctypes
import time

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]


def to_device(data):
    address = libc.malloc(len(data))  # the line
    ctypes.memmove(address, data, len(data))
    return address


addresses = []
batch = bytes(200_000)
for step in range(2500):
    addresses.append(to_device(batch))
    if step % 25 == 0:
        print("step", step, hex(addresses[-1]), flush=True)
    time.sleep(.012)
