"""A data set that decodes all its pictures when it is made, so that training need not wait for the disk."""
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 120


def stored(index):
    return bytearray(random.Random(index).randbytes(3 * SIDE * SIDE))


class Album(Dataset):
    def __init__(self, count):
        self.pictures = [self.decode(stored(index)) for index in range(count)]

    @staticmethod
    def decode(raw):
        return torch.frombuffer(raw, dtype=torch.uint8).reshape(3, SIDE, SIDE).float().div_(255)  # the line

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self.pictures[index], index % 10


torch.manual_seed(0)
loader = DataLoader(Album(2200), batch_size=8, shuffle=True)
model = nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(3 * 15 * 15, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
for epoch in range(2):
    for step, (pictures, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"epoch {epoch}, step {step}: {loss.item():.4f}", flush=True)
        time.sleep(.025)
