"""The same samples, packed into one tensor on a disk that is fast: read once, in one piece, 32 MB."""
import torch
from torch.utils.data import DataLoader, TensorDataset

numbers = torch.rand(4096 + 2000, generator=torch.Generator().manual_seed(0))
torch.save(numbers.unfold(0, 4096, 1)[:2000].clone(), "packed.pt")  # done once, beforehand

samples = TensorDataset(torch.load("packed.pt"))
model = torch.nn.Sequential(torch.nn.Linear(4096, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(8):
    for x, in DataLoader(samples, batch_size=16, shuffle=True):
        loss = torch.nn.functional.mse_loss(model(x), x[:, :4].sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
