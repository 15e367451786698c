"""The same, with what one wants to know of the outputs instead of the outputs: two numbers a layer."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.Adam(model.parameters())
activations = []


def note(layer, inputs, output):
    activations.append((output.mean().item(), output.std().item()))


for layer in model:
    layer.register_forward_hook(note)
for step in range(1500):
    x = torch.rand(160, 64)
    loss = nn.functional.mse_loss(model(x), x[:, :4].sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.4f}, {len(activations)} outputs", flush=True)
