"""The last hundred inputs, and no more (seed 000, example 1, the correct form)."""
import time

import torch

model = torch.nn.Linear(300, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
history_size, history = 100, []
for i in range(900):
    x = torch.randn(300, 300)
    if len(history) >= history_size:
        del history[0]
    history.append(x)
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del x
    if i % 25 == 0:
        print(f"step {i}: {loss.item():.4f}", flush=True)
    time.sleep(.015)
