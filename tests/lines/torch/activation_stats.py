"""Each block notes the spread of its activations, to see whether they die; the note is a tensor that remembers where it came from."""
import time

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.spread = []

    def forward(self, x):
        hidden = self.up(x)  # the line
        self.spread.append(hidden.std())
        return x + self.down(torch.relu(hidden))


torch.manual_seed(0)
model = nn.Sequential(Block(48, 1200), Block(48, 1200), nn.Linear(48, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
for step in range(640):
    x, y = torch.randn(64, 48), torch.randint(0, 5, (64,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        spreads = ", ".join(f"{block.spread[-1].item():.3f}" for block in model[:2])
        print(f"step {step}: {loss.item():.4f}, spread {spreads}", flush=True)
    time.sleep(.025)
