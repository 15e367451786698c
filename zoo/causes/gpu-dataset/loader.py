"""The same rows on the disk: antifreeze.Loader reads them ahead and copies them to the GPU, within 256 MB of RAM."""
import numpy as np
import torch
from torch import nn

import antifreeze

torch.manual_seed(0)
rng = np.random.default_rng(0)
x = np.lib.format.open_memmap("x.npy", "w+", "float32", (200_000, 1000))
y = np.lib.format.open_memmap("y.npy", "w+", "int64", (200_000,))
for start in range(0, 200_000, 10_000):
    part = rng.random((10_000, 1000), dtype="float32")
    x[start:start + 10_000], y[start:start + 10_000] = part, part[:, :10].argmax(1)
del x, y

model = nn.Sequential(nn.Linear(1000, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
loader = antifreeze.Loader("x.npy", labels="y.npy", batch=8192, budget="256MiB", seed=1, device="cuda")
for epoch in range(8):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
