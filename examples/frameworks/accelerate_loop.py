"""Profile three updates of a loop that uses Accelerate: pip install '.[torch,transformers]'.

It writes train.json.gz.
"""

import torch
from accelerate import Accelerator
from torch import nn

from tracehunch import callbacks

accelerator = Accelerator(gradient_accumulation_steps=2)
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 1))
optimizer = torch.optim.AdamW(model.parameters())
data = torch.utils.data.TensorDataset(torch.randn(256, 64), torch.randn(256, 1))
loader = torch.utils.data.DataLoader(data, batch_size=16)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

with accelerator.profile(callbacks.for_accelerate("train.json.gz", guess={"sdpa.backend": "none"})):
    for inputs, targets in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.mse_loss(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
