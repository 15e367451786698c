"""Seed 000, example 2, at a size where the trouble is real: a network as wide as the seed's layer, and batches of 24576.

What each function's result takes until the way back is 4 kB a row, 100 MB a batch; a step takes some 600 MB, and all of it comes and goes.
"""
import torch
import torch.nn as nn
import torch.optim as optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(32, 1000)
        self.out = nn.Linear(1000, 8)

    def forward(self, x):
        x = self.wide(x)  # the line
        x = torch.tanh(x)  # the line
        x = torch.sin(x)  # the line
        return self.out(x)


torch.manual_seed(0)
model = Net()
optimizer = optim.Adam(model.parameters())
batch_size = 24576
for step in range(10):
    x = torch.randn(batch_size, 32)
    loss = nn.functional.mse_loss(model(x), x[:, :8] * x[:, 8:16])
    optimizer.zero_grad()
    loss.backward()  # the line: on the way back it is as much again
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}", flush=True)
