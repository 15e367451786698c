"""A DataLoader whose workers wait for a lock that nobody will open: a thread wrote to the journal, and so held its lock, at the moment when
the workers were forked. Their copy of the lock stays closed, for the thread is not copied with it. It would stand for ever.
"""
import queue
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset

lock, lines = threading.Lock(), queue.SimpleQueue()


def write_journal():
    while True:
        text = lines.get()
        with lock:
            time.sleep(1.5)  # a disk that is slow just now
            print(text, flush=True)


class Rows(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, number):
        x = torch.rand(32, generator=torch.Generator().manual_seed(number))
        with lock:  # the line
            return x, x[:4].sum()


threading.Thread(target=write_journal, daemon=True).start()
model = torch.nn.Linear(32, 1)
optimizer = torch.optim.SGD(model.parameters(), .05)
for workers in (0, 2):
    lines.put(f"an epoch with {workers} workers begins")
    time.sleep(.1 if workers else 2)
    for x, y in DataLoader(Rows(), batch_size=64, num_workers=workers):
        loss = torch.nn.functional.mse_loss(model(x)[:, 0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.5f}", flush=True)
