"""Each epoch makes its data anew and lets go of it; intermediates are bound to the loop (seed 004, example 2: harmless)."""
import gc
import time

import torch

model = torch.nn.Linear(500, 100)
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
for epoch in range(9):
    data = torch.randn(20_000, 500)
    for i in range(60):
        outputs = model(data[i * 128:i * 128 + 128])
        loss = outputs.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        intermediate_result = torch.matmul(outputs, outputs.T)
        time.sleep(.025)
    print(f"epoch {epoch}: {loss.item():.5f} {intermediate_result.mean().item():.4f}", flush=True)
    del data
    gc.collect()
