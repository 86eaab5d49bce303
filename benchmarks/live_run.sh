#!/bin/bash
# tracehunch run, live on a GPU: prints PASS/FAIL lines and times. cwd: the repository root; python has torch.
ROOT=$PWD; export PYTHONPATH=$ROOT/src${PYTHONPATH:+:$PYTHONPATH}; export NO_COLOR=1 COLUMNS=100
W=$(mktemp -d); cd "$W" || exit 2
cat > common.py <<'E'
import time, torch
def model(width=1024, layers=6):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(width, 16, 4 * width, batch_first=True, dropout=0.0)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).cuda().bfloat16()
E
cat > adamw.py <<'E'
import json, sys, time, torch
from common import model
m = model(); o = torch.optim.AdamW(m.parameters(), lr=1e-4, fused=True)
x = torch.randn(8, 512, 1024, device="cuda", dtype=torch.bfloat16); times = []; losses = []
for i in range(int(sys.argv[1])):
    torch.cuda.synchronize(); t = time.perf_counter()
    loss = m(x).float().square().mean(); loss.backward(); o.step(); o.zero_grad(); losses.append(loss)
    torch.cuda.synchronize(); times.append(time.perf_counter() - t)
print(json.dumps([[losses[0].item(), losses[-1].item()], sorted(times[20:])[len(times[20:]) // 2] if len(times) > 40 else 0]))
E
cat > replay.py <<'E'
import torch
from common import model
m = model(layers=2).eval(); x = torch.randn(8, 256, 1024, device="cuda", dtype=torch.bfloat16)
s = torch.cuda.Stream()
with torch.no_grad():
    with torch.cuda.stream(s):
        for _ in range(3): m(x)
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g): y = m(x)
    for _ in range(20): g.replay()
torch.cuda.synchronize(); print("done", bool(y.isfinite().all()))
E
cat > forwards.py <<'E'
import torch
from common import model
m = model(layers=2).eval(); x = torch.randn(8, 256, 1024, device="cuda", dtype=torch.bfloat16)
with torch.inference_mode():
    for _ in range(20): y = m(x)
print("done", bool(y.isfinite().all()))
E
cat > whole.py <<'E'
import torch
a = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
for _ in range(40): a = (a @ a).mul_(1e-2)
torch.cuda.synchronize(); print("done")
E
cat > workers.py <<'E'
import torch
from torch.utils.data import DataLoader
def main():
    torch.manual_seed(0)
    m = torch.nn.Linear(512, 512).cuda(); o = torch.optim.SGD(m.parameters(), lr=1e-3)
    n = 0
    for epoch in range(2):
        for x in DataLoader(torch.randn(64, 512), batch_size=8, num_workers=2, pin_memory=True):
            m(x.cuda(non_blocking=True)).square().mean().backward(); o.step(); o.zero_grad(); n += 1
    print("done", n)
if __name__ == "__main__": main()
E
cat > raises.py <<'E'
import torch
m = torch.nn.Linear(512, 512).cuda(); o = torch.optim.AdamW(m.parameters(), fused=True)
for i in range(9):
    if i == 5: raise ValueError("boom")
    m(torch.randn(64, 512, device="cuda")).square().mean().backward(); o.step(); o.zero_grad()
E
cat > visible.py <<'E'
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
import torch
assert not torch.cuda.is_initialized()
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # still honoured: nothing has touched the driver
print("devices", torch.cuda.device_count(), torch.cuda.is_available())
E
cat > pinned.py <<'E'
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
import torch
m = torch.nn.Linear(512, 512).cuda(); o = torch.optim.SGD(m.parameters(), lr=1e-3)
for i in range(8): m(torch.randn(64, 512, device="cuda")).square().mean().backward(); o.step()
print("devices", torch.cuda.device_count())
E
cat > verify.py <<'E'
"""verify.py TRACE STEPS MIN_KERNELS_A_STEP [UNFINISHED]: counts and times of GPU events."""
import gzip, json, sys
from collections import Counter
path, steps, least = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
unfinished = int(sys.argv[4]) if len(sys.argv) > 4 else 0
ev = [e for e in json.loads(gzip.open(path).read())["traceEvents"] if e.get("ph") == "X"]
spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in ev if e["name"].startswith("ProfilerStep") and e.get("cat") == "user_annotation")
gpu = [e for e in ev if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
runtime = {e["args"].get("correlation"): e for e in ev if e.get("cat") in ("cuda_runtime", "cuda_driver")}
bad = []
if len(spans) != steps: bad.append(f"{len(spans)} complete ProfilerStep, not {steps}")
if sum(e.get("cat") == "unfinished_annotation" and e["name"].startswith("ProfilerStep") for e in ev) != unfinished: bad.append("unfinished steps")
begin = min(e["ts"] for e in ev); end = max(e["ts"] + e["dur"] for e in ev)
for e in gpu:
    if not (begin - 1 <= e["ts"] <= end) or e["dur"] < 0: bad.append(f"time of {e['name'][:40]} {e['ts']}"); break
    launch = runtime.get(e["args"].get("correlation"))
    if launch is not None and e["ts"] < launch["ts"] - 2: bad.append(f"{e['name'][:40]} begins {launch['ts'] - e['ts']:.1f} us before its launch"); break
orphans = sum(e["args"].get("correlation") not in runtime for e in gpu)
if orphans: bad.append(f"{orphans} of {len(gpu)} GPU events without a launch")
per = []
for a, b in spans:
    ours = {c for c, e in runtime.items() if a <= e["ts"] < b}
    per.append(sum(e["args"].get("correlation") in ours for e in gpu if e["cat"] == "kernel"))
if spans and min(per) < least: bad.append(f"kernels per step {per}")
if len(set(per)) > 1: print("      note: kernels per step differ:", per)
gap = [round(min((e["ts"] for e in ev if e.get("cat") in ("cpu_op", "cuda_runtime") and e["ts"] >= a), default=b) - a) for a, b in spans]
print("     ", "; ".join(bad) or f"{len(gpu)} GPU events, kernels per step {per}, us to the first op {gap}, us per step {[round(b - a) for a, b in spans]}")
sys.exit(bool(bad))
E
RUN="timeout 100 python -m tracehunch run"
say() { if [ "$1" = 0 ]; then echo "PASS  $2"; else echo "FAIL  $2"; fi; }
check() { # name, wanted status, text in stderr, steps, least kernels, unfinished, options...
  n=$1 rc=$2 text=$3 steps=$4 least=$5 unf=$6; shift 6; t=$(date +%s.%N)
  $RUN "$@" > $n.out 2> $n.err; got=$?
  ok=0; [ $got = $rc ] || { ok=1; echo "      status $got, wanted $rc"; }
  grep -q -- "$text" $n.err || { ok=1; echo "      not said: $text"; grep -a 'tracehunch:\|Error' $n.err | head -3; }
  [ "$steps" = - ] || python verify.py tracehunch-$n.json.gz $steps $least $unf || ok=1
  say $ok "$n ($(echo "$(date +%s.%N) - $t" | bc 2>/dev/null) s; $(grep -a -m1 'tracehunch: ' $n.err | cut -c1-110))"
}
python adamw.py 100 > plain.out & wait $!
check adamw 0 "recorded 3 optimizer steps" 3 50 0 --no-look adamw.py 100
python - <<'E'
import json
a, b = (json.loads(open(f).read()) for f in ("plain.out", "adamw.out"))
# flash's backward adds up in any order: only the first loss, from a forward alone, is the same to the bit
same = a[0][0] == b[0][0] and abs(a[0][1] - b[0][1]) < 0.05 * abs(a[0][1])
print("PASS " if same else "FAIL ", f"first loss equal, last within 5 %: {a[0]} {b[0]}")
print("PASS " if b[1] < 1.03 * a[1] else "FAIL ", f"a step after detaching: {b[1]*1e3:.3f} ms, plain {a[1]*1e3:.3f} ms, ratio {b[1]/a[1]:.4f}")
E
check replay 0 "recorded 3 forwards" 3 10 0 --no-look replay.py
check forwards 0 "recorded 3 forwards" 3 10 0 -o forwards.html forwards.py
check whole 0 "the script as a whole" 1 40 0 whole.py
check workers 0 "recorded 3 optimizer steps" 3 5 0 --no-look workers.py
check raises 1 "recorded 2 optimizer steps (ended after 2 of 3 steps)" 2 5 1 --no-look raises.py
check pinned 0 "recorded 3 optimizer steps" 3 5 0 --no-look pinned.py
check visible 0 "nothing was recorded" - - - visible.py
[ "$(cat visible.out)" = "devices 0 False" ]; say $? "CUDA_VISIBLE_DEVICES set after import torch: $(cat visible.out)"
grep -q "Findings" whole.err; say $? "the look of whole"; [ -s forwards.html ]; say $? "forwards.html"
grep -c "Traceback" adamw.err replay.err forwards.err whole.err workers.err pinned.err visible.err | grep -v ':0$' && say 1 "tracebacks above"
sed -n 1,60p whole.err
(cd "$ROOT" && timeout 60 python benchmarks/run_overhead.py --device cuda --pairs 2)
rm -rf "$W"
