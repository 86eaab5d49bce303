"""Environment variables that change what PyTorch runs and how fast, without what is nobody's business.

A variable is kept by its name (a family that configures CUDA, PyTorch or its libraries) and only with a value
that is a setting: numbers, switches, short words. Names that stand for secrets, people, places or hosts are
left out, and a value that looks like a path, an address or a key is not kept: only that it was set.
"""

from __future__ import annotations

import getpass
import os
import platform
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FAMILIES: Final = (
    "CUBLAS_", "CUBLASLT_", "CUDA_", "CUDNN_", "HIP_", "HSA_", "INDUCTOR_", "MIOPEN_", "NCCL_", "PYTORCH_",
    "RCCL_", "ROCBLAS_", "TORCH_", "TORCHDYNAMO_", "TORCHINDUCTOR_", "TRITON_",
)  # fmt: skip
"""Beginnings of names."""

NAMES: Final = (
    "DISABLE_ADDMM_CUDA_LT", "KMP_AFFINITY", "KMP_BLOCKTIME", "MKL_NUM_THREADS", "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS", "OMP_PROC_BIND", "OPENBLAS_NUM_THREADS", "ROCR_VISIBLE_DEVICES",
)  # fmt: skip
"""Whole names."""

NOT_KEPT: Final = "(set)"
"""Stands for a value that is no setting, or may be more than one."""

_PRIVATE: Final = re.compile(
    r"TOKEN|SECRET|PASS|CREDENTIAL|AUTH|KEY|COOKIE|SESSION|SIGNATURE|CERT"  # secrets
    r"|USER|OWNER|EMAIL|ACCOUNT|PROJECT|TEAM|JOB|RUN_ID"  # people and their work
    r"|HOST|ADDR|URL|URI|SERVER|PROXY|ENDPOINT|COMM_ID|NODE"  # machines
    r"|PATH|DIR|HOME|FILE|ROOT|PREFIX|TRACE|DUMP|LOG(?!S$)|NAME"  # places
)
_LONGEST: Final = 120
_PIECES: Final = re.compile(r"[,;:=|+\s]+")
_SETTING: Final = re.compile(
    r"-?\d{1,12}(?:\.\d{1,6}){0,2}(?:-\d{1,3}|[A-Za-z%]{0,3})|[A-Za-z][A-Za-z0-9_-]{0,39}"
)
_HAS_DIGIT: Final = re.compile(r"\d")
_MIXED: Final = 16  # characters of a word with digits in it: sm_90, mlx5_0
_VISIBLE_DEVICES: Final = re.compile(r"-?\d+(?:,-?\d+)*|")


def settings(environ: Mapping[str, str] | None = None) -> Iterator[tuple[str, str]]:
    """Yield the variables to keep, by name; ``environ`` is this process's if not given."""
    there = os.environ if environ is None else environ
    private = _own_names(there)
    for name in sorted(there):
        if (name in NAMES or name.startswith(FAMILIES)) and not _PRIVATE.search(name):
            yield name, _kept(name, there[name].strip(), private)


def _own_names(environ: Mapping[str, str]) -> frozenset[str]:
    """Return what this user and this machine are called."""
    names = {environ.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "HOSTNAME", "COMPUTERNAME")}
    names |= {platform.node(), platform.node().partition(".")[0]}
    with suppress(ImportError, KeyError, OSError):  # a user without an entry, a system without users
        names.add(getpass.getuser())
    return frozenset(name.lower() for name in names if name)


def _kept(name: str, value: str, private: frozenset[str]) -> str:
    if name.endswith("_VISIBLE_DEVICES"):  # else the serial number of a device
        return value if _VISIBLE_DEVICES.fullmatch(value) else NOT_KEPT
    pieces = [piece for piece in _PIECES.split(value) if piece]
    told = any(piece.lower() in private for piece in pieces)
    if not told and len(value) <= _LONGEST and all(_is_setting(piece) for piece in pieces):
        return value
    return NOT_KEPT


def _is_setting(piece: str) -> bool:
    """Whether it is a number or a word as people choose them: long mixtures of both are keys."""
    if _SETTING.fullmatch(piece) is None:
        return False
    return piece.isdigit() or not _HAS_DIGIT.search(piece) or len(piece) <= _MIXED
