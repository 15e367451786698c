"""Seed 001, example 2, on a GPU and in torch: the error is caught and printed, and the program ends as if all were well, with exit status 0
and without a trained model. (TensorFlow's ResourceExhaustedError is torch's OutOfMemoryError.)
"""
import torch
from torch import nn


def train(samples):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)
    x = torch.rand(samples, 256)
    y = x[:, :10].argmax(1)
    for step in range(12):
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())  # the line
        optimizer.zero_grad()
        loss.backward()  # the line
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}", flush=True)


try:
    train(60_000)
except torch.OutOfMemoryError as e:
    print(f"Out of memory error encountered: {e}")
except Exception as e:
    print(f"An unexpected error occurred: {e}")
