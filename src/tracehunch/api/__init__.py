"""What users import: ``profile``, ``look``, ``check``, ``diff``, ``ranks``, and the steps of these."""

from tracehunch.api.decorator import profiled
from tracehunch.api.looking import check, diff, guess_from, look
from tracehunch.api.many import ranks
from tracehunch.api.profiling import Profile, profile
from tracehunch.api.ready import trace_ready
from tracehunch.api.shown import Look, Verdict
from tracehunch.api.shown_diff import Diff
from tracehunch.api.shown_ranks import Ranks
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
    "Ranks",
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
    "ranks",
    "read",
    "trace_ready",
]
