"""A Look as the JSON that others may rely on, schema "tracehunch/1".

What cannot be known is absent, never null or zero. The same input gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tracehunch.report.origin import gpu_shares
from tracehunch.report.scope_ops import OpUse, ops_of
from tracehunch.units import NAME_LIMIT
from tracehunch.verdict import Verdict

if TYPE_CHECKING:
    from tracehunch.facts.model import Fact, KernelUse, ScopeFacts
    from tracehunch.guess import Claim
    from tracehunch.trace.model import Device, Environment
    from tracehunch.tree import Tree
    from tracehunch.verdict import CannotTell, Finding, Held, Look, Surprise

SCHEMA: Final = "tracehunch/1"

COUNTS: Final = (
    "n_events",
    "n_complete",
    "n_kernels",
    "n_gpu_ops",
    "kernel_sum_us",
    "gpu_busy_us",
    "n_steps",
    "n_cpu_ops",
    "n_launches",
    "n_orphan_gpu_ops",
    "n_launches_without_gpu_op",
    "n_bad_dur",
    "n_overhead",
    "rank",
    "world_size",
)
"""What the schema promises under ``trace.counts``, in its order."""

Object = dict[str, Any]

# What JSON allows raw but a terminal that shows it should not see: C1 controls, what hides or reorders text.
_HIDDEN: Final = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def render(look: Look, *, scopes: Collection[str] = ()) -> bytes:
    """Return the Look as indented JSON in UTF-8; only the named scopes where some are named."""
    report = look_object(look)
    if scopes:
        wanted = {json_text(scope) for scope in scopes}
        report["scopes"] = [scope for scope in report["scopes"] if scope["name"] in wanted]
        report["findings"] = [finding for finding in report["findings"] if finding["scope"] in wanted]
        untold = report["verdict"]["cannot_tell"]
        report["verdict"]["cannot_tell"] = [unknown for unknown in untold if unknown["scope"] in wanted]
    return encode(report)


def encode(report: Object) -> bytes:
    """Any report object as indented JSON in which no control character stands raw."""
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    if not text.isascii():
        text = _HIDDEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text.decode()).encode()
    return text.replace(b"\x7f", b"\\u007f") + b"\n"


def look_object(look: Look) -> Object:
    """Trace, scopes, findings and verdict, under the schema's name."""
    return {
        "schema": SCHEMA,
        "trace": trace_object(look.facts.tree, look.facts.counts),
        "scopes": [scope_object(scope, look.facts.tree) for scope in look.facts.scopes],
        "findings": [finding_object(finding) for finding in look.checked.findings],
        "verdict": verdict_object(look.verdict.and_then(Verdict(cannot_tell=look.checked.cannot_tell))),
    }


def trace_object(tree: Tree, counts: Mapping[str, object]) -> Object:
    """Return what was recorded on what, the counts, and the warnings."""
    trace, header, shares = tree.trace, tree.trace.header, gpu_shares(tree)
    recorded, environment = header.recorded, environment_object(header.environment)
    return {
        "events": trace.n_events,
        "gpu_activities": len(trace.gpu.row),
        "outside_window": shares.outside,
        "unattributed_gpu_time_us": shares.unattributed_us,
        **({} if header.torch is None else {"torch": json_text(header.torch)}),
        "devices": [_device(device) for device in header.devices],
        **({"environment": environment} if environment else {}),
        "recorded": {"shapes": recorded.shapes, "stacks": recorded.stacks, "memory": recorded.memory},
        "counts": {key: counts[key] for key in COUNTS if counts.get(key) is not None},
        "warnings": [
            {"code": notice.code, "message": json_text(notice.message)}
            for notice in (*trace.notices, *tree.notices)
        ],
    }


def environment_object(environment: Environment) -> Object:
    """Return what the trace says of its machine and software, in groups; one without anything is absent."""
    groups = {
        "versions": environment.versions,
        "machine": environment.machine,
        "flags": environment.flags,
        "variables": environment.variables,
    }
    return {
        group: {json_text(name): json_value(value) for name, value in entries.items()}
        for group, entries in groups.items()
        if entries
    }


def scope_object(scope: ScopeFacts, tree: Tree) -> Object:
    """Return a scope with its facts per call, where calls differ their spread, and its kernels.

    A scope that put nothing on a GPU has its ops in addition, as ``"ops": [{"name", "per_call",
    "self_cpu_time_us", "cpu_time_us"}]``, medians over its calls, by the time in themselves.
    """
    ops = [] if scope.kernels else [_op(use) for use in ops_of(scope, tree)]
    return {
        "name": json_text(scope.scope.name),
        "kind": scope.scope.kind,
        "calls": len(scope.scope.calls),
        "own_thread": _values(scope.own_thread),
        "facts": _values(scope.facts),
        "spread": {
            _key(fact): [fact.low, fact.high]
            for fact in scope.facts.values()
            if fact.low is not None and fact.high is not None and fact.low != fact.high
        },
        **({"percent_of_peak": dict(scope.percent_of_peak)} if scope.percent_of_peak else {}),
        "kernels": [kernel_object(kernel) for kernel in scope.kernels],
    } | ({"ops": ops} if ops else {})


def _op(use: OpUse) -> Object:
    return {
        "name": json_text(use.name),
        "per_call": use.per_call,
        "self_cpu_time_us": use.self_us,
        "cpu_time_us": use.total_us,
    }


def kernel_object(kernel: KernelUse) -> Object:
    """One GPU activity's name under one op within a scope; FLOPs, bytes and time per call of the scope.

    Of bytes/s and FLOP/s, and percent of the data sheet's peak that bounds it, over all of its time.
    """
    identity = kernel.identity
    known = {
        "op": json_text(kernel.op) or None,
        "library": identity.library,
        "algorithm": identity.algorithm,
        "unit": identity.unit,
        "dtype": identity.dtype,
        "per_call": kernel.per_call,
        "gpu_time_us": kernel.gpu_time_us,
        "occupancy_percent": kernel.occupancy_percent,
        "flops": kernel.work.flops,
        "hbm_bytes": kernel.work.hbm_bytes,
        "achieved_flops": kernel.work.achieved_flops,
        "achieved_bandwidth": kernel.work.achieved_bandwidth,
        "bound": kernel.work.bound,
        "percent_of_peak": kernel.work.percent_of_peak,
    }
    return {"name": json_text(kernel.name), "kind": kernel.kind} | {
        k: v for k, v in known.items() if v is not None
    }


def finding_object(finding: Finding) -> Object:
    """Return what a check saw."""
    return {
        "id": finding.id,
        "scope": json_text(finding.scope),
        "severity": finding.severity,
        "confidence": finding.confidence,
        "time_at_stake_us": finding.time_at_stake_us,
        "summary": json_text(finding.summary),
        "cause": json_text(finding.cause),
        "fix": json_text(finding.fix),
        "evidence": finding.evidence,
    }


def verdict_object(verdict: Verdict) -> Object:
    """Return what became of the claims: three outcomes."""
    return {
        "held": [_held(held) for held in verdict.held],
        "surprises": [_surprise(surprise) for surprise in verdict.surprises],
        "cannot_tell": [cannot_tell_object(unknown) for unknown in verdict.cannot_tell],
    }


def _held(held: Held) -> Object:
    return _claim(held.claim, held.seen)


def _surprise(surprise: Surprise) -> Object:
    return _claim(surprise.claim, surprise.seen) | {
        "severity": surprise.severity,
        "explained_by": surprise.explained_by,
        "time_at_stake_us": surprise.time_at_stake_us,
        "evidence": surprise.evidence,
    }


def cannot_tell_object(unknown: CannotTell) -> Object:
    """Return what the trace cannot decide."""
    record = {"record_with": json_text(unknown.record_with)} if unknown.record_with else {}
    said = {"key": unknown.key, "scope": json_text(unknown.scope), "reason": json_text(unknown.reason)}
    return said | record


def _claim(claim: Claim, seen: object) -> Object:
    return {
        "key": claim.key,
        "relation": claim.relation,
        "expected": json_value(claim.expected),
        "seen": json_value(seen),
        "unit": claim.unit,
        "scope": json_text(claim.scope),
        "who": claim.who,
        "why": json_text(claim.why),
    }


def _values(facts: Mapping[str, Fact]) -> Object:
    return {_key(fact): json_value(fact.value) for fact in facts.values()}


def _key(fact: Fact) -> str:
    return f"{fact.key}_us" if fact.unit == "us" and not fact.key.endswith("_us") else fact.key


def json_value(value: object) -> object:
    """Return any value of a fact or claim as JSON holds it."""
    if isinstance(value, str):
        return json_text(value)
    if isinstance(value, Sequence):
        return [json_value(one) for one in value]
    return value


def _device(device: Device) -> Object:
    known = {"compute_capability": device.compute_capability, "sms": device.sms}
    return {"name": json_text(device.name)} | {
        key: value for key, value in known.items() if value is not None
    }


def json_text(text: str) -> str:
    """Return text that JSON can hold: as it is, but without halves of surrogate pairs, and cut if endless."""
    if len(text) > NAME_LIMIT:
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        text = f"{text[:NAME_LIMIT]}... ({len(text)} characters, sha256 {digest})"
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
