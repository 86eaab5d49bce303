"""All files of a Space."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Final

from tracehunch.errors import TracehunchError
from tracehunch.space.hardware import HARDWARE, has_gpu
from tracehunch.space.package import own_files
from tracehunch.space.pins import requirements

if TYPE_CHECKING:
    from collections.abc import Mapping

PYTHON: Final = "3.12"
"""The image's. Releases of torch from 2.5 on have wheels for it."""

PORT: Final = 7860

_FRONT: Final = {
    "emoji": "🔎",
    "colorFrom": "indigo",
    "colorTo": "green",
    "sdk": "docker",
    "app_port": PORT,
    "short_description": "Attention on this hardware: guess, run, look",
    "license": "apache-2.0",
    "pinned": False,
}
"""Of the README's front matter, what is the same in each Space. A description has at most 60 characters."""


_UNSEEN: Final = ("Cc", "Cs", "Co", "Zl", "Zp")
"""Unicode categories that no title has: control, surrogate, private, line and paragraph separators."""


@dataclass(frozen=True, slots=True)
class Space:
    """What a Space is to be."""

    title: str
    hardware: str
    """As ``known`` has checked it."""
    torch: str
    """As ``torch_build`` returns it."""
    version: str
    """Of tracehunch."""
    options: tuple[str, ...] = ()
    """Of ``tracehunch attention``."""
    from_pypi: bool = False

    @property
    def command(self) -> str:
        """What it runs."""
        return " ".join(("tracehunch attention", *self.options))


def contents(space: Space) -> dict[str, bytes]:
    """Return path -> content of every file.

    Raises:
        TracehunchError: the title cannot be one.

    """
    own: Mapping[str, bytes] = {} if space.from_pypi else own_files()
    extra = {"tracehunch": space.version} if space.from_pypi else {}
    header = f"For Python {PYTHON} on Linux x86-64. torch pins NVIDIA's packages itself."
    texts = {
        "README.md": _front_matter(space) + _template("README.md").substitute(_words(space)),
        "Dockerfile": _template("Dockerfile").substitute(python=PYTHON, port=PORT),
        "requirements.txt": requirements(space.torch, extra, header=header),
        "settings.json": _settings(space),
        "app.py": _template("app.py").template,
        ".gitattributes": _template("gitattributes").template,
        ".gitignore": _template("gitignore").template,
        ".dockerignore": _template("dockerignore").template,
    }
    return {**{path: text.encode() for path, text in texts.items()}, **own}


def _template(name: str) -> Template:
    return Template((files(__package__) / "templates" / f"{name}.in").read_text(encoding="utf-8"))


def _front_matter(space: Space) -> str:
    """Return the YAML block; each value is written as JSON, which is YAML too."""
    if not space.title.strip() or any(unicodedata.category(one) in _UNSEEN for one in space.title):
        raise TracehunchError(f"--title {space.title!r} cannot be shown", "", "give a line of text")
    values = {"title": space.title, **_FRONT, "suggested_hardware": space.hardware}
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join(["---", *lines, "---", ""])


def _words(space: Space) -> dict[str, str]:
    origin = "installed from PyPI" if space.from_pypi else "whose files are here, in `tracehunch/`"
    gpu = f" ({HARDWARE[space.hardware]})" if has_gpu(space.hardware) else ""
    return {
        "command": space.command,
        "hardware": f"{space.hardware}{gpu}",
        "torch": space.torch,
        "version": space.version,
        "origin": origin,
    }


def _settings(space: Space) -> str:
    said = {
        "options": list(space.options),
        "hardware": space.hardware,
        "gpu": has_gpu(space.hardware),
        "timeout_s": 1800,
        "pause_s": 60,
    }
    return json.dumps(said, indent=2) + "\n"
