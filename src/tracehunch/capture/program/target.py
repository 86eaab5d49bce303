"""Find what a user names as "module:function", call it, and read what it returns."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
import traceback
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tracehunch.capture.program.place import INSTALLED
from tracehunch.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

_FORM = "module:function, as train:build or path/to/train.py:build"


@dataclass(frozen=True, slots=True)
class Call:
    """What is to be run: a callable and what it is called with."""

    run: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


def load(target: str, search: Path) -> Callable[[], Any]:
    """Return the function that a target names; its module is imported from `search` first.

    Raises:
        CaptureError: the target is malformed, its module cannot be imported or has no such name.

    """
    place, colon, names = target.rpartition(":")
    if not colon or not place or not names:
        raise CaptureError(f"{target!r} names no function", "", f"write {_FORM}")
    found: Any = _module(place, search)
    for done, name in enumerate(names.split(".")):
        if not hasattr(found, name):
            owner = ".".join([place, *names.split(".")[:done]])
            raise CaptureError(f"{owner} has no {name!r}", "", _meant(name, found))
        found = getattr(found, name)
    if not callable(found):
        raise CaptureError(f"{target} is a {type(found).__name__}", "a function is needed", f"write {_FORM}")
    return found  # type: ignore[no-any-return]  # of a module that is not known before


def read(made: Any, target: str) -> Call:
    """Return the call in what a function returned: (callable, args, kwargs), (callable, args) or a callable.

    Raises:
        CaptureError: it is none of these.

    """
    wanted = "return (callable, args, kwargs), (callable, args) or a callable"
    if callable(made):
        return Call(made)
    if not isinstance(made, tuple) or not 1 <= len(made) <= 3 or not callable(made[0]):
        raise CaptureError(f"{target} returned {_described(made)}", "", wanted)
    args = made[1] if len(made) > 1 else ()
    kwargs = made[2] if len(made) > 2 else {}
    if isinstance(args, dict) and len(made) == 2:
        raise CaptureError(
            f"{target} returned (callable, dict)", "args come second", "return (callable, (), kwargs)"
        )
    if not isinstance(args, (tuple, list)):
        raise CaptureError(f"{target} returned args that are {_described(args)}", "", "put them into a tuple")
    if not isinstance(kwargs, dict):
        raise CaptureError(
            f"{target} returned kwargs that are {_described(kwargs)}", "", "put them into a dict"
        )
    return Call(made[0], tuple(args), kwargs)


@contextmanager
def forgotten() -> Iterator[None]:
    """Forget the user's modules that are imported meanwhile: their tensors belong to one recording."""
    before = set(sys.modules)
    try:
        yield
    finally:
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            ours = name.partition(".")[0] == __name__.partition(".")[0]
            if file and not ours and not file.startswith(INSTALLED):
                del sys.modules[name]


@contextmanager
def arguments_of(target: str) -> Iterator[None]:
    """Let the program see no command line but its own name."""
    with patch.object(sys, "argv", [target.rpartition(":")[0]]):
        yield


def last_line(error: BaseException) -> str:
    """Return an error in a line, with the file and line of user code that it comes from."""
    text, where = _told(error), own_line(error)
    return f"{text} ({where})" if where else text


def own_line(error: BaseException) -> str:
    """Return the file and line of user code that an error comes from, "" for none."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if "site-packages" not in one.filename and "importlib" not in one.filename]
    own = [one for one in own if not one.filename.startswith("<")]  # generated code
    own = [one for one in own if Path(__file__).parents[1] not in Path(one.filename).parents]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


def _told(error: BaseException) -> str:
    """Return class and message of an error, without the message's further lines (backends, advice)."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({Path(error.filename).name}:{error.lineno})"
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


def _module(place: str, search: Path) -> ModuleType:
    with _first(search):
        try:
            return _from_file(search / place) if place.endswith(".py") else importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is not None and (place == error.name or place.startswith(f"{error.name}.")):
                raise CaptureError(
                    f"no module {place!r} in {search} or installed", "", _near(place, search)
                ) from error
            raise _broken(place, error) from error
        except Exception as error:  # the user's module may raise anything
            if isinstance(error, CaptureError):
                raise
            raise _broken(place, error) from error
        except SystemExit as error:
            raise CaptureError(
                f"{place} ends the program when it is imported", "", 'guard it by if __name__ == "__main__"'
            ) from error


def _broken(place: str, error: BaseException) -> CaptureError:
    advice = "mend it, then try again"
    if place.endswith(".py") and isinstance(error, ImportError) and "relative import" in str(error):
        advice = f"name it in its package: {place.removesuffix('.py').replace('/', '.')}:function"
    return CaptureError(f"{place} cannot be imported", last_line(error), advice)


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise CaptureError(f"no file {path}", "", f"write {_FORM}")
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_to_guess"
    made = importlib.util.spec_from_file_location(name, path)
    if made is None or made.loader is None:
        raise CaptureError(f"{path} is no Python file", "", f"write {_FORM}")
    module = importlib.util.module_from_spec(made)
    sys.modules[name] = module  # as its own classes may look themselves up
    with _first(path.parent):
        made.loader.exec_module(module)
    return module


@contextmanager
def _first(folder: Path) -> Iterator[None]:
    """Import from a folder first, as `python -m` does."""
    entry = str(folder)
    sys.path.insert(0, entry)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        if entry in sys.path:
            sys.path.remove(entry)


def _near(place: str, search: Path) -> str:
    if place.endswith(".py") or "/" in place:
        return f"write {_FORM}"
    files = sorted(path.stem for path in search.glob("*.py"))
    close = difflib.get_close_matches(place, files, n=1)
    if close:
        return f"did you mean {close[0]}?"
    first = place.split(".", maxsplit=1)[0]
    return f"run it in the folder that holds {first}.py, or write path/to/file.py:function"


def _meant(name: str, owner: Any) -> str:
    public = [one for one in dir(owner) if not one.startswith("_") and callable(getattr(owner, one, None))]
    close = difflib.get_close_matches(name, public, n=1)
    if close:
        return f"did you mean {close[0]}?"
    own = [
        one
        for one in public
        if getattr(getattr(owner, one), "__module__", "") == getattr(owner, "__name__", "")
    ]
    return f"it has {', '.join(own[:6])}" if own else "define a function of that name in it"


def _described(value: Any) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {', '.join(type(one).__name__ for one in value) or 'nothing'}"
    if value is None:
        return "nothing"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
