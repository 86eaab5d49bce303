"""What one backend says to a call: its table's checks applied, and put into words."""

from dataclasses import replace
from functools import lru_cache

from tracehunch.predict.environment import Backend, Environment
from tracehunch.predict.releases import Release, Version, releases
from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.check import Check, changing, checks_in, table_of
from tracehunch.predict.sdpa.prediction import BackendAnswer, Rejection
from tracehunch.predict.sdpa.words import slots


def answer_of(backend: Backend, table: str, call: SdpaCall, env: Environment) -> BackendAnswer:
    """Apply a table's checks to a call."""
    failed: list[Check] = []
    unknown = ""
    for check in checks_in(table, env.torch):
        answer = check.passes(call, env, check.numbers)
        if answer is True:
            continue
        if answer is False and check.known_in(env.torch):
            failed.append(check)
        elif not unknown:
            unknown = f"{backend}: " + (
                f"depends on {answer}"
                if answer
                else f"it is not known whether torch {env.torch_name} refuses this"
            )
    if failed:
        return BackendAnswer(
            backend, accepted=False, rejections=_rejections(failed, backend, table, call, env)
        )
    rules = table_of(table)
    if not unknown and not rules.is_complete(env.torch) and not rules.accepts_otherwise:
        unknown = f"{backend}: its rules are not known for torch {env.torch_name} on {env.device}"
    return BackendAnswer(backend, accepted=None if unknown else True, unknown=unknown)


def _rejections(
    failed: list[Check], backend: Backend, table: str, call: SdpaCall, env: Environment
) -> tuple[Rejection, ...]:
    sizes = slots(call, env)
    found = []
    for check in failed:
        words = {**sizes, **check.numbers}
        found.append(
            Rejection(
                backend=backend,
                check=check.id,
                words=check.words.format_map(words),
                todo=check.todo.format_map(words),
                changes=_changes(check, table, call, env) if check.id in changing(table) else "",
                source=check.source,
            )
        )
    return tuple(found)


def moved(env: Environment, release: Release, *, same_cuda: bool = False) -> Environment:
    """Return the environment under another release; a cuDNN and CUDA that are the wheel's move with it.

    With `same_cuda` it is that release's wheel for the CUDA there is.
    """
    own = releases().get(env.torch)
    pinned = own is not None and env.cudnn == own.cudnn_of(env.cuda)
    built = not same_cuda and own is not None and env.cuda == own.cuda
    cuda = release.cuda if built else env.cuda
    return replace(
        env, torch=release.torch, micro=None, cudnn=release.cudnn_of(cuda) if pinned else env.cudnn, cuda=cuda
    )


@lru_cache(maxsize=64)
def _elsewhere(env: Environment) -> tuple[Environment, ...]:
    """Return the environment under each other release whose rules are exactly known, oldest first."""
    others = (release for release in releases().values() if release.exact and release.torch != env.torch)
    return tuple(moved(env, release) for release in others)


def _changes(check: Check, table: str, call: SdpaCall, env: Environment) -> str:
    """Say which other versions do not refuse the call on this ground, where their rules are known."""
    accepting: list[Version] = []
    news = ""
    for there in _elsewhere(env):
        forms = [form for form in checks_in(table, there.torch) if form.id == check.id]
        if all(form.passes(call, there, form.numbers) is True for form in forms):
            accepting.append(there.torch)
            if there.torch > env.torch and not news:
                news = next((form.news for form in forms if form.news), "")
    newer = [version for version in accepting if version > env.torch]
    older = [version for version in accepting if version < env.torch]
    parts = []
    if newer:
        parts.append(f"from torch {_name(newer[0])} {news or 'this is no obstacle'}")
    if older:
        parts.append(f"up to torch {_name(older[-1])} this was no obstacle")
    return "; ".join(parts)


def _name(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
