"""A data set that caches what it has decoded, in each worker of the loader."""
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, count):
        self.count = count
        self.cache = {}

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = torch.full((3, 96, 96), float(index % 255))  # the line
        return self.cache[index], index % 10


def main():
    torch.manual_seed(0)
    loader = DataLoader(Images(20_000), batch_size=8, num_workers=2, shuffle=True)
    model = torch.nn.Conv2d(3, 4, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=.001)
    for step, (images, _) in enumerate(loader):
        optimizer.zero_grad()
        model(images).mean().backward()
        optimizer.step()
        if step % 20 == 0:
            print("step", step, flush=True)
        time.sleep(.01)


if __name__ == "__main__":
    main()
