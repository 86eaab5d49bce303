"""Profile three updates of a Lightning Trainer: pip install '.[torch,lightning]'.

It writes train.json.gz.
"""

import lightning.pytorch as pl
import torch
from torch import nn

from tracehunch import callbacks


class Regression(pl.LightningModule):
    """A small network; nothing in it knows of the profiler."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 1))

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        """Return the loss of a batch."""
        inputs, targets = batch
        return nn.functional.mse_loss(self.net(inputs), targets)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.AdamW(self.parameters())


data = torch.utils.data.TensorDataset(torch.randn(256, 64), torch.randn(256, 1))
loader = torch.utils.data.DataLoader(data, batch_size=16)
trainer = pl.Trainer(
    max_steps=8,
    logger=False,
    enable_checkpointing=False,
    callbacks=[callbacks.for_lightning("train.json.gz", guess={"sdpa.backend": "none"})],
)
trainer.fit(Regression(), loader)
