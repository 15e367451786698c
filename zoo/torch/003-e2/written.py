"""Seed 003, example 2, as it is written: gradients are to be accumulated over 4 batches, but nothing in it is called `i`."""
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
model = nn.Linear(20, 2)
inputs = torch.randn(3200, 20)
labels = inputs[:32, :2].argmax(1)
train_loader = DataLoader(inputs, batch_size=32)
criterion = nn.CrossEntropyLoss()
num_epochs, learning_rate = 3, 1e-3

accumulation_steps = 4
optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)

for epoch in range(num_epochs):
    for batch in train_loader:
        optimizer.zero_grad()
        outputs = model(batch)
        loss = criterion(outputs, labels)
        loss = loss / accumulation_steps
        loss.backward()
        if (i+1) % accumulation_steps == 0:  # the line  # noqa: F821
            optimizer.step()
