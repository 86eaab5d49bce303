"""The guess of a whole program as JSON.

```
{"schema": "tracehunch/1",
 "program": {"name", "torch", "parameters", "parameter_bytes", "op_calls"},
 "environment": {"gpu", "torch", "cudnn", "compute_capability"},
 "totals": {"kernels", "copies", "memsets", "gpu_time_us", "low_us", "high_us", "roofline_us", "flops",
            "bytes", "cpu_time_us", "cpu_low_us", "cpu_high_us", "profiled_cpu_time_us",
            "launch_cost_us", "op_cost_us", "module_cost_us", "bound": "gpu" | "launch" | "either",
            "at_least": false, "ranges": {"kernels": [low, high], ...}},
 "dominant": [{"op", "share"}],
 "ops": [{"op", "module", "calls", "kernels", "copies", "memsets", "gpu_time_us", "low_us", "high_us",
          "roofline_us", "flops", "bytes", "bound", "called": [ops], "lines": [...], "confidence",
          "untold"}],
 "modules": [{"module", "type", and the same numbers}],
 "sdpa": [{"module", "backend", "reasons", "phase", "calls", "line", "call",
           "hazards": [{"id", "words"}]}],
 "findings": [{"id", "scope", "severity", "confidence", "time_at_stake_us", "summary", "cause", "fix",
               "line"}],
 "smaller_findings": [the same of those with next to nothing at stake],
 "cannot_tell": [{"op", "count", "reason", "open", "modules", "line", "remedy"}],
 "compiled": {"inductor", "mode", "regions_run", "graph_breaks": [{"reason", "line", "remedy"}],
              "recompiles": [{"function", "call", "reason", "line"}], "steady",
              "regions": [{"id", "phase", "line", "runs", "kernels", "generated": [{"name", "launches",
                           "fused", "bytes", "gpu_time_us"}], "library": [{"op", "calls"}] ...}]}}
```

`op` is the op under which a trace shows the launches, `called` what the program called. What cannot be told
is absent; counts of a row with `untold` calls are at least so many. `ranges` has those of the total counts
that are not sure. `sdpa` has an entry for each module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report.json_report import SCHEMA, Object, encode, json_text
from tracehunch.report.program_compiled import compiled_object

if TYPE_CHECKING:
    from tracehunch.predict.program.model import (
        Amounts,
        Foreseen,
        ModuleRow,
        OpRow,
        ProgramGuess,
        SdpaGuess,
        Totals,
        Untold,
    )


def render(guess: ProgramGuess) -> bytes:
    """Write the guess as indented JSON, UTF-8, ending in a newline."""
    return encode(program_object(guess))


def program_object(guess: ProgramGuess) -> Object:
    """Return the guess as plain data."""
    program, env = guess.program, guess.env
    capability = env.compute_capability
    return {
        "schema": SCHEMA,
        "program": {
            "name": json_text(program.name),
            "torch": str(program.torch),
            "parameters": program.parameters,
            "parameter_bytes": program.parameter_bytes,
            "op_calls": len(program.calls),
        },
        "environment": _known(
            {
                "gpu": None if env.gpu is None else env.gpu.name,
                "torch": env.torch_name,
                "cudnn": env.cudnn,
                "compute_capability": None if capability is None else ".".join(map(str, capability)),
            }
        ),
        "totals": _totals(guess.totals),
        "dominant": [{"op": one.op, "share": round(one.share, 4)} for one in guess.leaders],
        "ops": [_op(row) for row in guess.ops],
        "modules": [_module(row) for row in guess.modules],
        "sdpa": [one for group in guess.sdpa for one in _sdpa(group)],
        "findings": [_finding(one) for one in guess.findings],
        "smaller_findings": [_finding(one) for one in guess.smaller],
        "cannot_tell": [_untold(one) for one in guess.cannot_tell],
        **({} if guess.compiled is None else {"compiled": compiled_object(guess.compiled)}),
    }


def _known(values: Object) -> Object:
    return {key: value for key, value in values.items() if value is not None}


def _numbers(found: Amounts) -> Object:
    return _known(
        {
            "kernels": found.kernels,
            "copies": found.copies,
            "memsets": found.memsets,
            "gpu_time_us": found.gpu_time_us,
            "low_us": found.low_us,
            "high_us": found.high_us,
            "roofline_us": found.roofline_us,
            "flops": found.flops,
            "bytes": found.bytes,
        }
    )


def _totals(totals: Totals) -> Object:
    host = totals.host
    return _numbers(totals.amounts) | _known(
        {
            "cpu_time_us": totals.cpu_time_us,
            "cpu_low_us": host.time.low_us,
            "cpu_high_us": host.time.high_us,
            "profiled_cpu_time_us": host.profiled.mid_us,
            "launch_cost_us": host.launch_us,
            "op_cost_us": host.op_us,
            "module_cost_us": host.module_us,
            "bound": totals.bound,
            "at_least": totals.at_least,
            "ranges": None if totals.at_least else _ranges(totals),
        }
    )


def _ranges(totals: Totals) -> Object:
    """Return the least and the most to expect of counts that are not sure."""
    return {key: [low, high] for key, (low, high) in totals.ranges.items() if low != high}


def _op(row: OpRow) -> Object:
    return {
        "op": row.op,
        "module": json_text(row.module),
        "calls": row.amounts.calls,
        **_numbers(row.amounts),
        **_known({"bound": row.amounts.bound}),
        "called": row.called,
        "lines": [json_text(line) for line in row.lines],
        "confidence": row.confidence,
        "untold": row.amounts.untold,
    }


def _module(row: ModuleRow) -> Object:
    return {
        "module": json_text(row.module),
        "type": json_text(row.module_type),
        "calls": row.amounts.calls,
        **_numbers(row.amounts),
        "untold": row.amounts.untold,
    }


def _sdpa(group: SdpaGuess) -> list[Object]:
    """Return an entry for each module; the calls of a group are spread evenly over its modules."""
    each = group.calls // max(len(group.modules), 1)
    said = {
        "reasons": [json_text(text) for text in group.reasons],
        "phase": group.phase,
        "calls": each,
        "line": json_text(group.line),
        "call": json_text(group.call),
        "hazards": [{"id": one.id, "words": one.words} for one in group.hazards],
    }
    return [
        {"module": json_text(module), **_known({"backend": group.backend}), **said}
        for module in group.modules or ("",)
    ]


def _finding(one: Foreseen) -> Object:
    return {
        "id": one.id,
        "scope": json_text(one.scope),
        "severity": one.severity,
        "confidence": one.confidence,
        "time_at_stake_us": one.time_at_stake_us,
        "summary": json_text(one.summary),
        "cause": json_text(one.cause),
        "fix": json_text(one.fix),
        "line": json_text(one.line),
    }


def _untold(one: Untold) -> Object:
    return {
        "op": one.op,
        "count": one.count,
        "reason": json_text(one.reason),
        "open": one.open,
        "modules": [json_text(module) for module in one.modules],
        "line": json_text(one.line),
        "remedy": json_text(one.remedy),
    }
