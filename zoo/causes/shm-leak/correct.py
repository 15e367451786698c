"""The same, with one place in shared memory that is written over."""
import torch

model = torch.nn.Linear(1000, 1)
optimizer = torch.optim.Adam(model.parameters(), .001)
published = torch.zeros(256, 1000).share_memory_()
for step in range(1500):
    x = torch.rand(256, 1000)
    loss = torch.nn.functional.mse_loss(model(x), x[:, :4].sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    published.copy_(x)
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
