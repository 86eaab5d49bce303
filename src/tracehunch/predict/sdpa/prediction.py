"""What a prediction of SDPA's dispatcher says."""

from dataclasses import dataclass
from typing import Literal

from tracehunch.predict.environment import Backend

Choice = Backend | Literal["error"]
"""A backend, or PyTorch's word for none."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a backend refuses a call.

    `check` is the condition's id, `words` what about the call it is, `todo` what to change, `changes` what
    other torch versions do about it ("" where they all do the same).
    """

    backend: Backend
    check: str
    words: str
    todo: str
    changes: str
    source: str

    @property
    def advice(self) -> str:
        """What refuses the call, what to change, and what other versions do."""
        changes = f" ({self.changes})" if self.changes else ""
        return f"{self.words}; {self.todo}{changes}"

    def __str__(self) -> str:
        return f"{self.backend}: {self.advice}"


@dataclass(frozen=True, slots=True)
class BackendAnswer:
    """What one backend says to a call: all its rejections, in PyTorch's order.

    `accepted` None is a cannot-tell: `unknown` says what would have to be known.
    """

    backend: Backend
    accepted: bool | None
    rejections: tuple[Rejection, ...] = ()
    unknown: str = ""

    @property
    def first(self) -> Rejection | None:
        """The condition at which PyTorch stops."""
        return self.rejections[0] if self.rejections else None


@dataclass(frozen=True, slots=True)
class SdpaPrediction:
    """What PyTorch does with a call.

    `chosen` is what its dispatcher picks ("error": nothing is left), None where that cannot be told and
    `cannot_tell` says why. `order` is the priority in which backends were asked, `answers` what each says.
    `raises` is the error that the call's forward ends in, None for none. `ran` is the backend whose op the
    trace shows, None where the call raises, is answered without one (no elements), or is not told. `why` says
    what set the order, `exact` whether the version's rules were read or executed rather than inferred.
    `direct`: the program calls the backend's operation itself, and `why` says so.
    """

    chosen: Choice | None
    order: tuple[Backend, ...]
    answers: tuple[BackendAnswer, ...]
    raises: str | None = None
    ran: Backend | None = None
    cannot_tell: str = ""
    why: str = ""
    exact: bool = True
    direct: bool = False

    def answer(self, backend: Backend) -> BackendAnswer | None:
        """Return what a backend says, None where the device has none of that name."""
        return next((answer for answer in self.answers if answer.backend == backend), None)
