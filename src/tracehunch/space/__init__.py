"""A Hugging Face Docker Space that runs ``tracehunch attention`` where it is put: its files, its server."""

from __future__ import annotations

from tracehunch.space.contents import Space, contents
from tracehunch.space.folder import write
from tracehunch.space.hardware import HARDWARE, has_gpu, known
from tracehunch.space.pins import torch_build

__all__ = ["HARDWARE", "Space", "contents", "has_gpu", "known", "torch_build", "write"]
