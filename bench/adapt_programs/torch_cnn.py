"""A small CNN on pictures like MNIST's, after PyTorch's own example, in a plain loop. Without its dropout, which draws anew."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import notes


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3)
        self.conv2 = nn.Conv2d(width, 2 * width, 3)
        self.fc1 = nn.Linear(2 * width * 144, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        notes.passed(len(x), torch.is_grad_enabled())
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return F.log_softmax(self.fc2(x), 1)


def digits(count):
    """Blurred blots, one kind for each label."""
    make = torch.Generator().manual_seed(7)
    labels = torch.randint(0, 10, (count,), generator=make)
    kinds = torch.randn(10, 1, 28, 28, generator=make)
    return TensorDataset(kinds[labels] + torch.randn(count, 1, 28, 28, generator=make), labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--width", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(digits(args.batch * args.steps), batch_size=args.batch)
    model = Net(args.width).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    notes.begin()
    model.train()
    for data, target in loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        notes.loss(loss.item())
    notes.end()


if __name__ == "__main__":
    main()
