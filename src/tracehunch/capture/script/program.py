"""Find the program that was asked for, and make the ``__main__`` that Python would make of it.

What ``python SCRIPT ARGS`` and ``python -m MODULE ARGS`` set: ``sys.argv``, ``sys.path[0]``, ``__file__``,
``__spec__`` (worker processes that are spawned find the program by it), and the code itself.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import zipfile
from dataclasses import dataclass
from importlib.machinery import BuiltinImporter, ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from tracehunch.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Sequence


_ANNOTATIONS: dict[str, Any] = {} if sys.version_info >= (3, 14) else {"__annotations__": {}}
"""Which older versions put into ``__main__``, whether it has any or not."""


@dataclass(frozen=True)
class Program:
    """Code to run as ``__main__``; ``file`` is its ``sys.argv[0]``, ``name`` is for files of its own."""

    code: CodeType
    file: str
    name: str
    attributes: dict[str, Any]


def find_script(path: str) -> Program:
    """Read a script, or the ``__main__.py`` of a folder or a zip file; ``sys.path[0]`` becomes its place.

    "-" reads the script from standard input, as Python does.

    Raises:
        CaptureError: there is none. SyntaxError: it is no Python.

    """
    if path == "-":
        return _from_stdin()
    whole = Path(path).absolute()
    if whole.is_dir() or zipfile.is_zipfile(path):
        _put_first(str(whole))
        spec = PathFinder.find_spec("__main__", [str(whole)])
        if spec is None:
            raise CaptureError(f"cannot run {path}", "it has no __main__.py", "name a script in it")
        return _of_spec(spec, whole.stem, argument=path)
    _put_first(str(whole.resolve().parent))
    file = str(whole)
    loader = SourceFileLoader("__main__", file)
    code = compile(_source(path), file, "exec", dont_inherit=True)
    attributes = {"__file__": file, "__loader__": loader, "__package__": None, "__spec__": None}
    return Program(code, path, whole.stem, {**attributes, "__cached__": None})


def _from_stdin() -> Program:
    _put_first("")
    code = compile(sys.stdin.buffer.read(), "<stdin>", "exec", dont_inherit=True)
    attributes = {"__file__": "<stdin>", "__loader__": BuiltinImporter, "__package__": None, "__spec__": None}
    return Program(code, "-", "stdin", {**attributes, "__cached__": None})


def find_module(name: str) -> Program:
    """Find a module, or the ``__main__`` of a package; ``sys.path[0]`` becomes the current folder.

    Raises:
        CaptureError: there is none. Whatever the package raises when it is imported goes on.

    """
    _put_first(str(Path.cwd()))
    spec = _spec(name)
    if spec.submodule_search_locations is not None:
        _import(name)
        main = importlib.util.find_spec(f"{name}.__main__")
        if main is None:
            raise CaptureError(f"cannot run {name}", "it has no __main__", "name a module in it")
        spec = main
    return _of_spec(spec, name)


def become_main(program: Program, arguments: Sequence[str]) -> dict[str, Any]:
    """Put a fresh ``__main__`` and the program's arguments in place; return the namespace to run it in.

    It stays in place afterwards: threads and exit handlers of the program still look things up there.
    """
    module = ModuleType("__main__")
    module.__dict__.update(_ANNOTATIONS, **program.attributes, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    sys.argv[:] = [program.file, *arguments]
    return module.__dict__


def _source(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as failure:
        todo = "name a Python script, or give -m with a module"
        if os.sep not in path and not path.endswith(".py"):
            todo += "; a launcher runs tracehunch, as in: torchrun --no-python tracehunch run SCRIPT"
        raise CaptureError(f"cannot run {path}", failure.strerror or str(failure), todo) from failure


def _spec(name: str) -> ModuleSpec:
    _import(name.rpartition(".")[0])
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # of a package that is not there; a name such as "a..b"
        spec = None
    if spec is None:
        hint = "name it without .py" if name.endswith(".py") else "run in its folder, or install it"
        raise CaptureError(f"no module named {name}", "", hint)
    return spec


def _import(package: str) -> None:
    """Import a package, unless there is none; what it raises itself goes on."""
    try:
        if package.strip("."):
            __import__(package)  # whose frames Python leaves out of tracebacks
    except ImportError as failure:
        if failure.name is None or not f"{package}.".startswith(f"{failure.name}."):
            raise


def _of_spec(spec: ModuleSpec, name: str, argument: str | None = None) -> Program:
    loader: Any = spec.loader
    code = loader.get_code(spec.name) if hasattr(loader, "get_code") else None
    if code is None:
        raise CaptureError(f"cannot run {name}", "it is not written in Python", "name a script")
    file = spec.origin or name
    attributes = {
        "__file__": file,
        "__loader__": loader,
        "__package__": spec.parent,
        "__spec__": spec,
        "__cached__": spec.cached,
    }
    return Program(code, argument or file, name, attributes)


def _put_first(folder: str) -> None:
    """Put a folder first on the search path, in place of our command's; not with ``python -P``."""
    if not sys.flags.safe_path:
        sys.path[0] = folder
