"""A metrics object with a confusion matrix of every batch, so that any span can be summed up later."""
import time

import torch
from torch import nn

CLASSES = 400


class Metrics:
    def __init__(self):
        self.matrices, self.right, self.seen = [], 0, 0

    def update(self, predicted, target):
        pairs = target * CLASSES + predicted
        self.matrices.append(torch.bincount(pairs, minlength=CLASSES * CLASSES).reshape(CLASSES, CLASSES))  # the line
        self.right += int((predicted == target).sum())
        self.seen += len(target)

    def accuracy(self):
        return self.right / self.seen

    def reset(self):
        self.right = self.seen = 0


torch.manual_seed(0)
model = nn.Linear(100, CLASSES)
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
metrics = Metrics()
for epoch in range(20):
    for _ in range(30):
        y = torch.randint(0, CLASSES, (128,))
        x = torch.randn(128, 100) + y[:, None] / CLASSES
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metrics.update(out.argmax(dim=1), y)
        time.sleep(.025)
    print(f"epoch {epoch}: {loss.item():.4f}, accuracy {metrics.accuracy():.3f}", flush=True)
    metrics.reset()
