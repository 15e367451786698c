"""A batch that is too large for this machine (seed 000, example 2, scaled)."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(20, 2000)
        self.two = nn.Linear(2000, 10)

    def forward(self, x):
        x = self.one(x)  # the line
        x = torch.relu(x)  # the line
        return self.two(x)


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.Adam(net.parameters())
batch_size = 24_000
for step in range(14):
    x = torch.randn(batch_size, 20)
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # the line: on the way back it is as much again
    optimizer.step()
    print(f"step {step}: {loss.item():.4f}", flush=True)
