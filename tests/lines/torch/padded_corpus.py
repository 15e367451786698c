"""A corpus of short texts, each padded to the longest the model can read."""
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LONGEST = 2048
WORDS = [f"word{i}" for i in range(5000)]
VOCABULARY = {word: i + 1 for i, word in enumerate(WORDS)}


def encode(text):
    ids = [VOCABULARY[word] for word in text.split()]
    row = torch.zeros(LONGEST, dtype=torch.long)  # the line
    row[:len(ids)] = torch.tensor(ids)
    return row


class Texts(Dataset):
    def __init__(self, count):
        chance = random.Random(0)
        texts = (" ".join(chance.choices(WORDS, k=chance.randrange(20, 120))) for _ in range(count))
        self.rows = [encode(text) for text in texts]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


torch.manual_seed(0)
loader = DataLoader(Texts(24_000), batch_size=32, shuffle=True)
model = nn.EmbeddingBag(5001, 16, padding_idx=0)
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
for step, rows in enumerate(loader):
    loss = model(rows).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step}: {loss.item():.5f}", flush=True)
    if step == 600:
        break
    time.sleep(.02)
