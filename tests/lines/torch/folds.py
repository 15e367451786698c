"""Cross-validation that keeps the model of each fold, and its optimizer."""
import time

import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(64, 3000), nn.ReLU(), nn.Linear(3000, 450))  # the line


def train(fold):
    torch.manual_seed(fold)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=.001)
    for _ in range(10):
        optimizer.zero_grad(set_to_none=True)
        loss = model(torch.randn(2, 64)).pow(2).mean()
        loss.backward()
        optimizer.step()
        time.sleep(.01)
    optimizer.zero_grad(set_to_none=True)
    return model, loss.item()


models = []
for fold in range(300):
    models.append(train(fold))
    print(f"fold {fold}: {models[-1][1]:.4f}", flush=True)
