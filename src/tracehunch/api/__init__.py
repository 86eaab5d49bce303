"""What users import: ``profile``, ``look``, ``check``, ``diff`` and the steps that they are made of."""

from tracehunch.api.decorator import profiled
from tracehunch.api.looking import check, diff, guess_from, look
from tracehunch.api.profiling import Profile, profile
from tracehunch.api.ready import trace_ready
from tracehunch.api.shown import Look, Verdict
from tracehunch.compare import Diff
from tracehunch.facts import measure
from tracehunch.guess import Claim, Guess
from tracehunch.trace import Trace, read
from tracehunch.tree import link
from tracehunch.verdict import Finding

__all__ = [
    "Claim",
    "Diff",
    "Finding",
    "Guess",
    "Look",
    "Profile",
    "Trace",
    "Verdict",
    "check",
    "diff",
    "guess_from",
    "link",
    "look",
    "measure",
    "profile",
    "profiled",
    "read",
    "trace_ready",
]
