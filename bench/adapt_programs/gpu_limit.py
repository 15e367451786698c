"""gpu_limit.py BYTES PROGRAM [ARGUMENT...]: a program on a GPU that is that small, as far as torch goes."""
import runpy
import sys

import torch

allowed = int(sys.argv[1])
torch.cuda.set_per_process_memory_fraction(min(1., allowed / torch.cuda.get_device_properties(0).total_memory))
del sys.argv[:2]
sys.path[0] = sys.argv[0].rpartition("/")[0] or "."
runpy.run_path(sys.argv[0], run_name="__main__")
