"""SDPA calls that a trace shows, held against the dispatcher's rules: what ran, what was expected, why."""

from tracehunch.predict.traced.because import why_it_ran
from tracehunch.predict.traced.causes import Cause, causes
from tracehunch.predict.traced.explain import VERDICTS, Case, Explained, Group, Verdict, explain, matters
from tracehunch.predict.traced.hazards import TracedHazard, traced_hazards
from tracehunch.predict.traced.masks import triangles
from tracehunch.predict.traced.recorded import CALLS, SDPA, UNRECORDED, RecordedCall, recorded_call
from tracehunch.predict.traced.setting import Asked, Setting, setting_of

__all__ = [
    "CALLS",
    "SDPA",
    "UNRECORDED",
    "VERDICTS",
    "Asked",
    "Case",
    "Cause",
    "Explained",
    "Group",
    "RecordedCall",
    "Setting",
    "TracedHazard",
    "Verdict",
    "causes",
    "explain",
    "matters",
    "recorded_call",
    "setting_of",
    "traced_hazards",
    "triangles",
    "why_it_ran",
]
