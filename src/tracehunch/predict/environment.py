"""Environment: where a call runs, as far as PyTorch's choices depend on it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal, get_args

from tracehunch.errors import GuessError
from tracehunch.hardware import Gpu, all_gpus, find_gpu
from tracehunch.predict.releases import Version, parse_version, releases

Device = Literal["cuda", "cpu", "rocm", "mps", "xpu"]
Backend = Literal["flash", "efficient", "math", "cudnn", "overrideable"]

DEVICES: Final[tuple[Device, ...]] = get_args(Device)
BACKENDS: Final[tuple[Backend, ...]] = get_args(Backend)

_TORCH = re.compile(r"v?(\d+\.\d+)(?:\.(\d+))?(?:[a-z.]+\d+)?(?:\+(\S+))?")
_CUDA_TAG = re.compile(r"cu(\d+)(\d)")
_SPACES = re.compile(r"[\s_]+")


@dataclass(frozen=True, slots=True)
class Environment:
    """Device, versions and process-wide settings.

    `torch` is (2, 11), `micro` its patch number where known; `compute_capability` (9, 0) on NVIDIA GPUs,
    `architecture` "gfx942" on AMD ones; `cudnn` the runtime version as `torch.backends.cudnn.version()`
    gives it (91900), `cuda` the version that torch was built for. What is None is unknown: an answer that
    depends on it is a cannot-tell.

    `env` are environment variables. `enabled` holds the `torch.backends.cuda.enable_*_sdp` flags that were
    changed (all are on by default). `pinned` is the list given to `sdpa_kernel`, empty for none;
    `set_priority` its flag of that name. `order` is a priority order set by hand before the call.
    `first_call`: no SDPA call was made on CUDA in this process yet. `deterministic`:
    `torch.use_deterministic_algorithms(True)`, `warn_only` its flag. `flash_version`: which FlashAttention is
    activated. `flash_built`: whether the build has flash kernels (many builds for Windows have none).
    `tf32`: whether products of float32 may run in TF32.
    """

    torch: Version
    device: Device = "cuda"
    compute_capability: tuple[int, int] | None = None
    cudnn: int | None = None
    gpu: Gpu | None = None
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    enabled: Mapping[Backend, bool] = field(default_factory=lambda: MappingProxyType({}))
    pinned: tuple[Backend, ...] = ()
    set_priority: bool = False
    order: tuple[Backend, ...] | None = None
    first_call: bool = False
    deterministic: bool = False
    warn_only: bool = False
    micro: int | None = None
    cuda: Version | None = None
    architecture: str | None = None
    flash_version: Literal["FA2", "FA3", "FA4"] = "FA2"
    flash_built: bool = True
    tf32: bool = False

    def __hash__(self) -> int:
        key = None if self.gpu is None else self.gpu.key
        settings = (
            self.pinned,
            self.set_priority,
            self.order,
            self.first_call,
            self.deterministic,
            self.tf32,
        )
        built = (self.torch, self.micro, self.cuda, self.cudnn, self.device, self.compute_capability, key)
        return hash((built, settings, frozenset(self.env.items()), frozenset(self.enabled.items())))

    def is_enabled(self, backend: Backend) -> bool:
        """Whether flags and pins leave a backend on."""
        if self.pinned:
            return backend in self.pinned
        return self.enabled.get(backend, True)

    @property
    def torch_name(self) -> str:
        """As "2.11"."""
        return f"{self.torch[0]}.{self.torch[1]}"


def environment(
    gpu: str | Gpu | None = None,
    torch: str = "",
    cudnn: int | None = None,
    *,
    device: Device | None = None,
    compute_capability: tuple[int, int] | None = None,
    env: Mapping[str, str] | None = None,
    pinned: tuple[Backend, ...] = (),
    deterministic: bool = False,
) -> Environment:
    """Return the environment of a GPU and a torch version.

    The GPU is its key, the words of its key, or its name: "h200", "a100-80-sxm", "NVIDIA H200". Without one,
    `device` or `compute_capability` say what runs the call. CUDA is that of the version's PyPI wheel unless
    given (as "2.11.0+cu128"), cuDNN that of the wheel for this CUDA version.

    Raises:
        GuessError: an unknown GPU, device or torch version, or nothing to say which.

    """
    if device is not None and device not in DEVICES:
        raise GuessError(f"device {device!r} is not known", "", f"use one of {', '.join(DEVICES)}")
    version, micro, cuda = torch_version(torch)
    release = releases()[version]
    found = gpu if gpu is None or isinstance(gpu, Gpu) else gpu_named(gpu)
    if found is None and device is None and compute_capability is None:
        raise GuessError("neither a GPU nor a device is named", "", "give one, as gpu='h200' or device='cpu'")
    of_vendor: Device = "cuda" if found is None or found.vendor == "nvidia" else "rocm"
    device = device or of_vendor
    if found is not None and device != of_vendor:
        raise GuessError(
            f"{found.name} is no {device} device", "", f"leave the device out, or use {of_vendor}"
        )
    made = Environment(
        torch=version, device=device, gpu=found, env=dict(env or {}), pinned=pinned,
        deterministic=deterministic, micro=micro,
    )  # fmt: skip
    if device == "rocm":
        return replace(made, architecture=None if found is None else found.compute_capability)
    if device != "cuda":
        return made
    if found is not None and compute_capability is None:
        compute_capability = parse_version(found.compute_capability)
    return replace(
        made,
        compute_capability=compute_capability,
        cudnn=release.cudnn_of(cuda or release.cuda) if cudnn is None else cudnn,
        cuda=cuda or release.cuda,
    )


def torch_version(text: str) -> tuple[Version, int | None, Version | None]:
    """Return version, patch number and CUDA version of "2.11.0+cu130"; what it does not say is None.

    Raises:
        GuessError: it is no version, or none whose rules are known.

    """
    known = [f"{major}.{minor}" for major, minor in releases()]
    todo = f"give one of {known[0]} to {known[-1]}"
    if not text:
        raise GuessError("no torch version is given", "what PyTorch picks depends on it", todo)
    found = _TORCH.fullmatch(text.strip())
    if found is None or found[1] not in known:
        raise GuessError(f"torch {text!r} is not among the versions whose rules are known", "", todo)
    tag = None if found[3] is None else _CUDA_TAG.fullmatch(found[3])
    return (
        parse_version(found[1]),
        None if found[2] is None else int(found[2]),
        None if tag is None else (int(tag[1]), int(tag[2])),
    )


def gpu_named(name: str) -> Gpu:
    """Return the GPU of the table with this key, start of a key ("h200") or name ("NVIDIA H200").

    Raises:
        GuessError: no such GPU, or several.

    """
    gpus = {gpu.key: gpu for gpu in all_gpus()}
    by_name = find_gpu(name)
    if by_name is not None:
        return by_name
    wanted = _words(name)
    joined = "".join(sorted(wanted))
    exact = [gpu for key, gpu in gpus.items() if _words(key) == wanted or key.replace("-", "") == joined]
    near = exact or [gpu for key, gpu in gpus.items() if wanted and wanted <= _words(key)]
    if len(near) == 1:
        return near[0]
    if not near:
        raise GuessError(f"GPU {name!r} is not known", "", f"use one of {', '.join(gpus)}")
    raise GuessError(f"GPU {name!r} may be several", "", f"say which: {', '.join(gpu.key for gpu in near)}")


def _words(name: str) -> frozenset[str]:
    """Words of a GPU's key, without the unit of its memory and what its memory technology is called."""
    words = _SPACES.sub("-", name.strip().lower()).removeprefix("nvidia-").removeprefix("amd-").split("-")
    return frozenset(word.removesuffix("gb") for word in words if word)
