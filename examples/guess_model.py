"""A small GPT as one would write it, and what to guess of it before it runs on a GPU.

tracehunch guess examples/guess_model.py:forward --gpu h200 --torch 2.13
tracehunch guess examples/guess_model.py:train_step --gpu h200 --torch 2.13
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.functional import mse_loss


class Block(nn.Module):
    """Attention written by hand, as many tutorials do, then a feed-forward layer."""

    def __init__(self, width: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) -> the same."""
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) -> the same."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def model() -> nn.Module:
    """Four blocks in bf16."""
    return nn.Sequential(*(Block() for _ in range(4))).to(torch.bfloat16)


def forward() -> tuple[Callable[..., Any], tuple[torch.Tensor]]:
    """Return what to call, and its arguments."""
    return torch.no_grad()(model().eval()), (torch.randn(8, 1024, 768, dtype=torch.bfloat16),)


def train_step() -> Callable[[], None]:
    """Return a whole step: forward, backward, optimizer, and a loss that is read at once."""
    trained = model().train()
    optimizer = torch.optim.AdamW(trained.parameters(), lr=1e-4)
    x = torch.randn(8, 1024, 768, dtype=torch.bfloat16)
    losses: list[float] = []

    def step() -> None:
        loss = mse_loss(trained(x), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())

    return step
