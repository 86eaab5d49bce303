"""Where a trace's calls ran: every environment that it may have been, by what the file says of itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tracehunch.errors import GuessError
from tracehunch.predict.environment import Environment, torch_version
from tracehunch.predict.releases import Release, Version, releases
from tracehunch.predict.traced.machine import machine_of
from tracehunch.tree import NONE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.hardware import Gpu
    from tracehunch.predict.traced.calls import Place
    from tracehunch.trace.model import Trace

_CUDNN_9: Final = 9  # from here on versions have two digits a part


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user says of the machine, in place of what the file does."""

    torch: str = ""
    cudnn: int | None = None
    gpu: Gpu | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """All environments that it may have been, oldest torch first; none where `unknown` says why.

    `hardware` is what the calls ran on, `torch` the version in words, `sure` whether there is but one,
    `cudnn_recorded` whether the version of cuDNN is more than the wheel's.
    """

    envs: tuple[Environment, ...] = ()
    hardware: str = ""
    torch: str = ""
    sure: bool = False
    cudnn_recorded: bool = False
    unknown: str = ""


def setting_of(trace: Trace, place: Place | None, device: int = NONE, asked: Asked | None = None) -> Setting:
    """Return the setting of calls that ran in one place, on the GPU of this number (NONE: not known).

    Raises:
        GuessError: `asked` names a torch version that is not known.

    """
    asked = Asked() if asked is None else asked
    if place is None:
        return Setting(unknown="the trace does not show what the call ran on")
    found = machine_of(trace, place, device, asked.gpu)
    if isinstance(found, str):
        return Setting(unknown=found)
    base, hardware = found
    versions = trace.header.environment.versions
    written = asked.torch or trace.header.torch or ""
    if not written:
        return _any_version(base, hardware, versions, asked)
    try:
        made = _with_torch(base, written, versions, asked)
    except GuessError as error:
        if asked.torch:
            raise
        return Setting(hardware=hardware, torch=written, sure=True, unknown=f"{error.what}: {error.todo}")
    how = "as given" if asked.torch else "as recorded"
    return Setting(
        (made,), hardware, f"{written}, {how}", sure=True, cudnn_recorded=_is_told(versions, asked)
    )


def _any_version(base: Environment, hardware: str, versions: Mapping[str, str], asked: Asked) -> Setting:
    """Try all releases built for the CUDA version of the file; if none was, all whose rules are known."""
    cuda = _cuda(versions) if base.device == "cuda" else None
    built = [release for release in releases().values() if cuda in release.builds]
    known = built or [release for release in releases().values() if release.exact]
    envs = tuple(_with_torch(base, _name(release), versions, asked) for release in known)
    words = f"one of {_name(known[0])} to {_name(known[-1])}" if len(known) > 1 else _name(known[0])
    because = f", whose wheels have CUDA {cuda[0]}.{cuda[1]}" if built and cuda is not None else ""
    told = _is_told(versions, asked)
    words = f"not recorded: {words}{because}"
    return Setting(envs, hardware, words, sure=len(envs) == 1, cudnn_recorded=told)


def _with_torch(base: Environment, torch: str, versions: Mapping[str, str], asked: Asked) -> Environment:
    """Put a version in; where CUDA and cuDNN are not recorded, they are those of its wheel."""
    version, micro, tag = torch_version(torch)
    made = replace(base, torch=version, micro=micro)
    if base.device != "cuda":
        return made
    release = releases()[version]
    cuda = tag or _cuda(versions) or release.cuda
    cudnn = asked.cudnn or _cudnn(versions.get("cudnn", "")) or release.cudnn_of(cuda)
    return replace(made, cuda=cuda, cudnn=cudnn)


def _is_told(versions: Mapping[str, str], asked: Asked) -> bool:
    return bool(asked.cudnn or _cudnn(versions.get("cudnn", "")))


def _name(release: Release) -> str:
    return f"{release.torch[0]}.{release.torch[1]}"


def _cuda(versions: Mapping[str, str]) -> Version | None:
    """Return what torch was built for, (13, 0); else the runtime, which a wheel brings along."""
    parts = _numbers(versions.get("cuda") or versions.get("cuda_runtime", ""))
    return (parts[0], parts[1]) if len(parts) >= 2 else None  # major, minor


def _cudnn(text: str) -> int | None:
    """Return 91900 for "9.19.0", 8902 for "8.9.2", as torch.backends.cudnn.version() does."""
    parts = _numbers(text)
    if len(parts) != 3:  # major, minor, patch
        return None
    major, minor, micro = parts
    return major * (10_000 if major >= _CUDNN_9 else 1_000) + minor * 100 + micro


def _numbers(text: str) -> list[int]:
    parts = text.split(".")
    return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else []
