"""``tracehunch attention``: the recorded traces everywhere, live runs on the CPU where torch is installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from tracehunch.attention import VARIANTS
from tracehunch.attention.expert import Expert
from tracehunch.cli import main
from tracehunch.guess import Claim, Guess
from tracehunch.trace import read

SNAPSHOT = Path(__file__).parent / "snapshots" / "attention_recorded.txt"
NAMES = [variant.name for variant in VARIANTS]
SMALL = [
    "--device",
    "cpu",
    "--batch",
    "1",
    "--heads",
    "2",
    "--seq",
    "32",
    "--head-dim",
    "16",
    "--warmup",
    "0",
]
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="runs attention with torch")
PLAIN = {"NO_COLOR": "1", "COLUMNS": "80", "OMP_NUM_THREADS": "1"}


def run(*args, stdin="", env=None):
    return CliRunner().invoke(main, ["attention", *args], input=stdin, env={**PLAIN, **(env or {})})


def process(code, *args, **more):
    command = [sys.executable, "-c", code, "attention", *args]
    return subprocess.run(
        command, capture_output=True, check=False, text=True, env={**os.environ, **PLAIN}, **more
    )


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Small work on one thread: two that wait for each other on a busy machine are slow."""
    if find_spec("torch") is not None:
        import torch  # noqa: PLC0415  # only where it is installed

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        yield
        torch.set_num_threads(before)
    else:
        yield


@pytest.fixture(scope="module")
def recorded():
    result = run("--device", "recorded", "--format", "json")
    assert result.exit_code == 0
    return json.loads(result.stdout)["attention"]


def scope(variant):
    return next(one for one in variant["look"]["scopes"] if one["name"] == variant["label"])


# what the recorded traces show


def test_every_variant_comes_in_the_order_of_the_series_with_its_guess_before_its_look(recorded):
    assert [variant["name"] for variant in recorded["variants"]] == NAMES
    assert {variant["status"] for variant in recorded["variants"]} == {"recorded"}
    for variant in recorded["variants"]:
        assert re.fullmatch("[0-9a-f]{64}", variant["guess"]["seal"])
        assert all("seen" not in claim for claim in variant["guess"]["claims"])


def test_kernels_copies_and_memsets_per_forward(recorded):
    counts = {
        variant["name"]: tuple(scope(variant)["facts"][key] for key in ("kernels", "copies", "memsets"))
        for variant in recorded["variants"]
    }
    assert counts == {
        "naive": (5, 1, 1),
        "naive_inplace": (5, 0, 1),
        "sdpa_math": (20, 0, 0),
        "sdpa_efficient": (1, 0, 0),
        "sdpa_flash": (1, 0, 0),
        "sdpa_cudnn": (1, 0, 1),
        "sdpa_auto": (1, 0, 1),
    }


@pytest.mark.parametrize(
    ("name", "gpu_time_us", "outside"),
    [
        ("naive", 1063.5, 2),
        ("naive_inplace", 938.1, 2),
        ("sdpa_math", 2617.0, 9),
        ("sdpa_efficient", 182.1, 0),
        ("sdpa_flash", 94.7, 0),
        ("sdpa_cudnn", 57.8, 0),
    ],
)
def test_gpu_times_and_what_lies_outside_the_window(recorded, name, gpu_time_us, outside):
    variant = next(one for one in recorded["variants"] if one["name"] == name)
    assert scope(variant)["facts"]["gpu_time_us"] == pytest.approx(gpu_time_us, rel=1e-3)
    assert variant["look"]["trace"]["outside_window"] == outside


def test_how_much_slower_each_variant_is_than_the_best(recorded):
    slower = {variant["name"]: variant["times_best"] for variant in recorded["variants"]}
    assert slower["sdpa_cudnn"] == 1.0
    assert slower["naive"] == pytest.approx(1063.54 / 57.82, rel=1e-3)
    assert slower["sdpa_math"] == pytest.approx(45.3, rel=1e-2)


def test_surprises_are_ranked_by_time_at_stake_and_explained(recorded):
    stakes = [surprise["time_at_stake_us"] for surprise in recorded["surprises"]]
    assert stakes == sorted(stakes, reverse=True)
    broken = {
        (variant["name"], surprise["key"]): surprise["explained_by"]
        for variant in recorded["variants"]
        for surprise in variant["look"]["verdict"]["surprises"]
    }
    assert set(broken) == {("naive", "copies"), ("sdpa_math", "kernels"), ("sdpa_math", "tensor_cores")}
    assert broken["naive", "copies"] == ["hidden-copy"]
    assert "sdpa-math-fallback" in broken["sdpa_math", "kernels"]
    assert "tensor-cores-idle" in broken["sdpa_math", "tensor_cores"]


def test_the_findings_of_the_series_come_out_by_themselves(recorded):
    found = {
        variant["name"]: {finding["id"] for finding in variant["look"]["findings"]}
        for variant in recorded["variants"]
    }
    assert "hidden-copy" in found["naive"]
    assert "hidden-copy" not in found["naive_inplace"]
    assert {"sdpa-math-fallback", "tensor-cores-idle", "mask-rebuilt", "safe-softmax"} <= found["sdpa_math"]
    assert "occupancy-explained" in found["sdpa_flash"]
    assert "occupancy-explained" in found["sdpa_cudnn"]
    assert not any("cpu-plan-cost" in ids for ids in found.values())


def test_a_look_in_the_series_is_the_object_that_look_gives(recorded):
    naive = recorded["variants"][0]
    alone = json.loads(CliRunner().invoke(main, ["look", naive["trace"], "--format", "json"]).stdout)
    assert {**naive["look"], "verdict": None} == {**alone, "verdict": None}


# the reports


def shown(*args, **more):
    return run("--device", "recorded", *args, **more).stdout


def test_the_whole_report_at_80_columns_without_colour():
    text = re.sub(r"tracehunch look \S*/recorded/", "tracehunch look .../recorded/", shown())
    if os.environ.get("TRACEHUNCH_UPDATE_SNAPSHOTS"):
        SNAPSHOT.parent.mkdir(exist_ok=True)
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert text == SNAPSHOT.read_text(encoding="utf-8")
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "\x1b" not in text


def test_the_table_has_every_variant_in_one_row():
    lines = [line.split() for line in shown().splitlines()]
    table = {line[0]: line for line in lines if len(line) > 2 and line[0] in NAMES and line[2] == "→"}
    assert table["naive"][1:5] == ["5/5+1", "→", "5+1", "1"]
    assert table["naive"][5:7] == ["1,063.5", "us"]
    assert table["sdpa_math"][1:5] == ["1/20", "→", "20+0", "0"]
    assert table["sdpa_auto"][-1] == "cudnn"
    assert list(table) == NAMES


def test_kernel_names_say_library_dtype_tile_and_tensor_cores():
    text = " ".join(shown("--all").split("What the kernel names say")[1].split())
    for said in (
        "mem-efficient attention-forward, on tensor cores, bf16",
        "64x64",
        "128x128",
        "knob 7",
        "version 2",
    ):
        assert said in text
    assert "through cuLaunchKernelEx, with no transposes" in text


def test_the_first_screen_is_short_and_says_what_it_leaves_out():
    short, whole = shown(), shown("--all")
    assert len(short.splitlines()) < 0.6 * len(whole.splitlines())
    surprises = short.split("Surprises")[1].split("Also seen")[0]
    for word in ("at stake", "cause  ", "fix  ", "evidence  "):
        assert surprises.count(word) >= 2
    plain = " ".join(short.split())
    for part in ("mask-rebuilt", "safe-softmax", "tensor-cores-idle"):  # told with sdpa-math-fallback, once
        assert plain.count(f"with it {part}: ") == 1
    assert "what 3 kernel names say" in plain
    assert "--all shows everything." in plain
    assert "no transposes" in plain


def test_what_several_variants_share_is_told_once():
    text = shown()
    assert text.count("cudnn_generated_fort_native_sdpa") == 1
    assert "note  sdpa_cudnn, sdpa_auto: occupancy-explained" in text


def test_markdown_has_the_same_content(recorded):
    text = shown("--format", "markdown")
    assert text.startswith("<!-- tracehunch:attention -->\n\n## tracehunch attention\n")
    for variant in recorded["variants"]:
        assert f"| <code>{variant['name']}</code> |" in text
    assert text.count("\n1. **") == len(recorded["surprises"])
    assert "What the kernel names say" in text


def test_narrower_and_wider_outputs_wrap_and_colour_is_only_added():
    narrow = shown(env={"COLUMNS": "60"})
    assert max(len(line) for line in narrow.splitlines() if "Next:" not in line) <= 60
    coloured = shown(env={"NO_COLOR": "", "FORCE_COLOR": "1"})
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured).replace(" ", "") == shown().replace(" ", "")


def test_only_the_wanted_variants_in_the_order_of_the_series():
    text = shown("--variant", "sdpa_flash", "--variant", "naive", "--format", "json")
    assert [one["name"] for one in json.loads(text)["attention"]["variants"]] == ["naive", "sdpa_flash"]


def test_guesses_are_told_before_looks_on_stderr():
    lines = run("--device", "recorded", "--variant", "naive").stderr.splitlines()
    guess = next(
        at for at, line in enumerate(lines) if line.startswith("naive (recorded): guess 5 kernels, 0 copies")
    )
    expert = next(at for at, line in enumerate(lines) if "the expert guesses 5 kernels, 1 copy" in line)
    seen = next(at for at, line in enumerate(lines) if "saw 5 kernels, 1 copy, 1 memset" in line)
    assert guess < expert < seen


def test_one_run_is_written_to_several_files(tmp_path):
    files = [tmp_path / "report.html", tmp_path / "report.json"]
    options = [word for file in files for word in ("-o", str(file))]
    result = run("--device", "recorded", "--variant", "naive", *options)
    assert (result.exit_code, result.stdout) == (0, "")
    assert files[0].read_text().startswith("<!doctype html>")
    assert json.loads(files[1].read_text())["schema"] == "tracehunch/1"
    refused = run("--device", "recorded", "-o", str(files[1]), "-o", str(tmp_path / "report.pdf"))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "the extension names no format" in refused.stderr


def test_output_goes_whole_to_a_file_by_its_extension(tmp_path):
    result = run("--device", "recorded", "-o", str(tmp_path / "report.json"))
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads((tmp_path / "report.json").read_text())["schema"] == "tracehunch/1"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_recorded_traces_are_saved_for_looking_at(tmp_path):
    result = run(
        "--device", "recorded", "--variant", "naive", "--save-traces", str(tmp_path / "new" / "traces")
    )
    saved = tmp_path / "new" / "traces" / "naive.json.gz"
    assert [path.name for path in saved.parent.iterdir()] == ["naive.json.gz"]
    assert len(read(saved).gpu.row) == 23
    assert f"Next: tracehunch look {saved}" in result.stdout or "Next: tracehunch look " in result.stdout


def test_gates():
    assert run("--device", "recorded", "--fail-on", "warning").exit_code == 1
    assert run("--device", "recorded", "--fail-on", "error").exit_code == 0
    assert run("--device", "recorded", "--strict", "--variant", "sdpa_flash").exit_code == 0
    assert (
        run("--device", "recorded", "--strict").exit_code == 3
    )  # work from before the window reaches into naive's
    assert run("--device", "recorded", "--variant", "sdpa_efficient", "--fail-on", "note").exit_code == 0


NO_TORCH = "import sys; sys.modules['torch'] = None; from tracehunch.cli import main; main()"


def test_without_torch_all_is_recorded_and_said_so():
    done = process(NO_TORCH, "--variant", "naive")
    assert done.returncode == 0
    assert "PyTorch is not installed, so all is from recorded traces" in done.stderr
    assert 'pip install "tracehunch[torch]"' in done.stderr
    assert "Recorded  (8,16,1024,64) bfloat16 causal" in done.stdout


def test_recorded_runs_load_no_torch():
    code = (
        "import sys\nfrom tracehunch.cli import main\n"
        "try: main()\nfinally: sys.stderr.write('loaded' if 'torch' in sys.modules else 'light')"
    )
    assert process(code, "--device", "recorded").stderr.endswith("light")


# bad input


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--heads", "10", "--kv-heads", "3"], "--heads 10 is not a multiple of --kv-heads 3"),
        (["--head-dim", "0"], "--head-dim 0 is no size"),
        (["--seq", "-5"], "--seq -5 is no size"),
        (["--batch", "0"], "--batch 0 is no size"),
        (["--kv-heads", "0"], "--kv-heads 0 is no size"),
        (["--seq", "100000000000"], "no memory for q, k and v of (1,8,100000000000,64)"),
        (["--seq", "9" * 30], "cannot make q, k and v"),
    ],
)
@needs_torch
def test_impossible_shapes_are_one_line_that_says_what_to_do(args, said):
    result = run("--device", "cpu", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr.splitlines()[-1]
    assert "; " in result.stderr.splitlines()[-1] or "cannot make" in said


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--seq", "2048"], "--seq 2048 cannot be had from the recorded traces"),
        (["--full", "--dtype", "float16"], "--full --dtype float16 cannot be had"),
        (["--steps", "4"], "they are of (8,16,1024,64) bfloat16 causal, 3 steps"),
        (["--save-traces", "/dev/null/traces"], "cannot write to /dev/null/traces"),
        (["-o", "/nonexistent/report.json"], "cannot write to /nonexistent"),
        (["-o", "report.pdf"], "the extension names no format"),
        (["--variant", "nope"], "'nope' is not one of"),
        (["--batch", "many"], "'many' is not a valid integer"),
        (["--dtype", "int8"], "'int8' is not one of"),
        (["--steps", "0"], "0 is not in the range"),
        (["--warmup", "-1"], "-1 is not in the range"),
        (["--device", "tpu"], "'tpu' is not one of"),
    ],
)
def test_wrong_options_are_told_before_anything_runs(args, said):
    result = run("--device", "recorded", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "guess" not in result.stderr
    assert len(result.stderr.splitlines()) <= 2


def test_what_was_recorded_may_be_asked_for():
    assert (
        run("--device", "recorded", "--seq", "1024", "--causal", "--steps", "3", "--kv-heads", "16").exit_code
        == 0
    )


def test_an_unwritable_folder_is_told_before_the_work(tmp_path):
    file = tmp_path / "file"
    file.touch()
    result = run("--device", "recorded", "--save-traces", str(file / "traces"))
    assert result.exit_code == 2
    assert "Not a directory; choose another place for --save-traces" in result.stderr


@needs_torch
def test_a_gpu_that_is_not_there_is_told():
    import torch  # noqa: PLC0415  # only where it is installed

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    result = run("--device", "cuda")
    assert result.exit_code == 2
    assert "PyTorch sees no CUDA device" in result.stderr
    assert "use --device cpu" in result.stderr


# live on the CPU


def live(*args, **more):
    result = run(*SMALL, "--format", "json", *args, **more)
    return result.exit_code, {one["name"]: one for one in json.loads(result.stdout)["attention"]["variants"]}


@needs_torch
def test_what_a_cpu_runs_is_run_and_the_rest_is_recorded_with_pytorchs_reason():
    code, variants = live()
    assert code == 0
    ran = ["naive", "naive_inplace", "sdpa_math", "sdpa_flash", "sdpa_auto"]
    assert [name for name, one in variants.items() if one["status"] == "ran"] == ran
    for name in ("sdpa_efficient", "sdpa_cudnn"):
        assert variants[name]["status"] == "recorded"
        assert "No viable backend for scaled_dot_product_attention" in variants[name]["reason"]
        assert variants[name]["device"]["name"] == "NVIDIA H200"
        assert variants[name]["times_best"] < 4
    assert all(variants[name]["verification"]["passed"] for name in ran)
    assert scope(variants["naive"])["calls"] == 20  # forwards are short: more of them than on a GPU
    assert scope(variants["sdpa_flash"])["facts"]["sdpa.backend"] == "flash"
    assert scope(variants["sdpa_math"])["facts"]["sdpa.backend"] == "math"
    claims = {claim["key"]: claim["expected"] for claim in variants["naive"]["guess"]["claims"]}
    assert claims == {"leaf_ops": 5}
    assert scope(variants["naive"])["facts"]["leaf_ops"] > 5
    assert variants["naive"]["look"]["trace"]["torch"] == variants["naive"]["device"]["torch"]
    assert min(variants[name]["times_best"] for name in ran) == 1.0


@needs_torch
def test_that_the_expert_knows_no_cpu_is_said_once():
    result = run(*SMALL, "--variant", "naive", "--variant", "sdpa_flash")
    assert result.stdout.count("No expert guess") == 1
    assert result.stderr.count("no expert guess") == 1
    assert "xpert guess held" not in result.stdout


@needs_torch
def test_whether_the_expert_foresaw_that_a_call_is_refused_is_told(monkeypatch):
    wanted = ("--variant", "sdpa_flash", "--variant", "sdpa_cudnn")
    foretold = Expert(Guess(()), raises="no kernel for it")
    monkeypatch.setattr("tracehunch.cli.series.expert_of", lambda *_: foretold)
    _, variants = live(*wanted)
    assert variants["sdpa_cudnn"]["reason"].endswith("As the expert guessed: no kernel for it")
    assert "misjudged" not in variants["sdpa_cudnn"]
    assert variants["sdpa_flash"]["status"] == "ran"
    assert variants["sdpa_flash"]["reason"].startswith("it ran, and the expert guessed that it raises")
    assert variants["sdpa_flash"]["misjudged"]
    assert "1 expert guess did not hold" in " ".join(run(*SMALL, *wanted).stdout.split())
    runs = Expert(Guess((Claim("sdpa.backend", "==", "cudnn", "sdpa_fwd", "expert", unit="text"),)))
    monkeypatch.setattr("tracehunch.cli.series.expert_of", lambda *_: runs)
    refused = live("--variant", "sdpa_cudnn")[1]["sdpa_cudnn"]
    assert "The expert guessed that it runs" in refused["reason"]
    assert refused["misjudged"]


@needs_torch
def test_a_live_report_reads_at_80_columns():
    text = run(*SMALL).stdout
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "leaf ops" in text
    assert "Not run here" in text
    assert "Recorded  (8,16,1024,64) bfloat16 causal" in text
    assert "Next: tracehunch attention --save-traces traces" in text
    headline = " ".join(text.split("At a glance")[0].split())
    assert headline.endswith("did not hold, all explained.")
    assert "only view or allocate" in text
    assert "aten::_scaled_dot_product_flash_attention_for_cpu itself" in " ".join(text.split())


@needs_torch
@pytest.mark.parametrize("everything", [(), ("--all",)])
def test_a_run_on_a_cpu_says_nothing_of_findings_in_the_recorded_traces(everything):
    args = ("--variant", "sdpa_flash", "--variant", "sdpa_cudnn")
    text = run(*SMALL, *args, *everything).stdout
    assert "occupancy" not in text
    assert "Also seen" not in text


@needs_torch
def test_steps_that_are_given_are_taken():
    _, variants = live("--variant", "naive", "--steps", "4")
    assert scope(variants["naive"])["calls"] == 4


@needs_torch
def test_saved_traces_are_read_like_a_users(tmp_path):
    live("--save-traces", str(tmp_path), "--variant", "naive", "--variant", "sdpa_cudnn", "--steps", "2")
    assert [path.name for path in tmp_path.iterdir()] == ["naive.json.gz"]
    trace = read(tmp_path / "naive.json.gz")
    assert trace.header.torch is not None
    assert trace.header.recorded.shapes
    names = [trace.name_of(row) for row in range(len(trace))]
    assert names.count("attn_fwd") == 2


@needs_torch
def test_options_reach_the_run():
    args = (
        "--variant",
        "naive",
        "--full",
        "--dtype",
        "float32",
        "--kv-heads",
        "1",
        "--no-verify",
        "--steps",
        "1",
    )
    _, variants = live(*args)
    naive = variants["naive"]
    assert naive["workload"] | {"causal": False, "dtype": "float32", "kv_heads": 1} == naive["workload"]
    assert "verification" not in naive
    assert {claim["key"]: claim["expected"] for claim in naive["guess"]["claims"]} == {"leaf_ops": 6}
    assert scope(naive)["calls"] == 1


def variant_that(forward, name="broken"):
    from dataclasses import replace  # noqa: PLC0415  # next to its only use

    return replace(VARIANTS[0], name=name, forward=forward)


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ValueError("shapes differ\nin detail"), "ValueError: shapes differ"),
        (
            RuntimeError("CUDA error: device-side assert triggered\nmore"),
            "RuntimeError: CUDA error: device-side assert",
        ),
        (
            MemoryError(),
            "out of memory; it holds 2 score matrices of 4 KiB each at least; try a smaller --batch",
        ),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 4 bytes"), "out of memory"),
        (AssertionError(), "AssertionError: AssertionError"),
    ],
)
@needs_torch
def test_a_variant_that_raises_is_told_in_one_line_and_the_rest_goes_on(monkeypatch, raised, said):
    def forward(_):
        raise raised

    broken = variant_that(forward)
    monkeypatch.setattr("tracehunch.cli.attention.VARIANTS", (broken, VARIANTS[1]))
    code, variants = live()
    assert code == 0
    assert variants["broken"]["status"] == "failed"
    assert said in variants["broken"]["reason"]
    assert "\n" not in variants["broken"]["reason"]
    assert variants["naive_inplace"]["status"] == "ran"
    assert live("--fail-on", "error")[0] == 1


@needs_torch
def test_a_variant_that_raises_only_under_the_profiler_is_told_too(monkeypatch):
    calls = iter(range(99))

    def forward(inputs):
        if next(calls) == 3:
            raise RuntimeError("only now")
        return VARIANTS[0].forward(inputs)

    monkeypatch.setattr("tracehunch.cli.attention.VARIANTS", (variant_that(forward), VARIANTS[1]))
    code, variants = live()
    assert code == 0
    assert (
        variants["broken"]["reason"]
        == "RuntimeError: only now; to look into it, run it alone: --variant broken"
    )
    assert variants["naive_inplace"]["status"] == "ran"


@needs_torch
def test_an_output_that_is_not_attention_is_an_error_of_that_variant(monkeypatch):
    broken = variant_that(lambda inputs: VARIANTS[0].forward(inputs) * 2)
    monkeypatch.setattr("tracehunch.cli.attention.VARIANTS", (broken, VARIANTS[0]))
    code, variants = live()
    assert code == 0
    assert variants["broken"]["status"] == "failed"
    assert "largest error" in variants["broken"]["reason"]
    assert not variants["broken"]["verification"]["passed"]
    assert "look" not in variants["broken"]
    assert live("--no-verify")[1]["broken"]["status"] == "ran"
    report = run(*SMALL).stdout
    assert "Went wrong" in report
    assert "broken: its output is wrong" in report


@needs_torch
def test_when_nothing_could_be_looked_at_the_reasons_are_reported_and_the_exit_code_is_2(monkeypatch):
    def forward(_):
        raise ValueError("no")

    monkeypatch.setattr("tracehunch.cli.attention.VARIANTS", (variant_that(forward),))
    result = run(*SMALL)
    assert result.exit_code == 2
    assert "Nothing was measured." in result.stdout
    assert "broken: ValueError: no" in result.stdout
    assert "Next: tracehunch attention --device recorded" in result.stdout


@needs_torch
def test_a_device_whose_profiler_sees_no_gpu_is_told(monkeypatch):
    from tracehunch.cli import series  # noqa: PLC0415  # next to its only use

    monkeypatch.setattr(series._Run, "_on_gpu", lambda *_: True)
    _, variants = live("--variant", "naive")
    assert variants["naive"]["status"] == "failed"
    assert "recorded no GPU activity" in variants["naive"]["reason"]


@needs_torch
def test_a_full_disk_costs_the_saved_trace_but_not_the_look(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    # only there: the profiler's trace itself is copied, too
    fake = SimpleNamespace(**vars(shutil) | {"copyfileobj": full})
    monkeypatch.setattr("tracehunch.cli.series.shutil", fake)
    _, variants = live("--variant", "naive", "--save-traces", str(tmp_path))
    assert variants["naive"]["status"] == "ran"
    assert "No space left on device" in variants["naive"]["reason"]
    assert list(tmp_path.iterdir()) == []


@needs_torch
def test_an_interrupt_reports_what_is_done_and_leaves_nothing_half_written(tmp_path):
    traces, report = tmp_path / "traces", tmp_path / "report.json"
    command = [sys.executable, "-m", "tracehunch", "attention", *SMALL, "--steps", "1000"]
    command += ["--save-traces", str(traces), "-o", str(report)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, **PLAIN, "TMPDIR": str(tmp_path)}
    ) as child:
        assert child.stderr is not None
        for line in child.stderr:
            if line.startswith("naive_inplace: guess"):
                child.send_signal(signal.SIGINT)
                break
        child.stderr.read()
        assert child.wait(300) == 130
    series = json.loads(report.read_text())["attention"]
    assert series["interrupted"]
    assert series["variants"][0]["name"] == "naive"
    assert series["not_done"] == NAMES[len(series["variants"]) :]
    assert {path.name for path in traces.iterdir()} == {
        f"{one['name']}.json.gz" for one in series["variants"]
    }
    left = {path.name for path in tmp_path.iterdir() if not path.name.startswith("torchinductor_")}
    assert left == {"traces", "report.json"}  # besides the cache that torch's profiler makes for itself


# --ask


def asked(stdin, *args, journal):
    env = {"TRACEHUNCH_JOURNAL": str(journal)}
    return run("--device", "recorded", "--ask", "--format", "json", *args, stdin=stdin, env=env)


def test_answers_are_claims_that_are_judged_and_kept(tmp_path):
    journal = tmp_path / "state" / "journal.jsonl"
    answers = "5\n0\nnone\nmasked_fill\n" + "5\n0\n\nsoftmax\nfaster\n"
    result = asked(answers, "--variant", "naive", "--variant", "naive_inplace", journal=journal)
    assert result.exit_code == 0
    naive, inplace = json.loads(result.stdout)["attention"]["variants"]
    mine = {one["key"]: one["seen"] for one in naive["look"]["verdict"]["held"] if one["who"] == "user"}
    assert set(mine) == {"kernels", "sdpa.backend", "dominant"}
    wrong = [one["key"] for one in naive["look"]["verdict"]["surprises"] if one["who"] == "user"]
    assert wrong == ["copies"]
    held = {one["key"] for one in inplace["look"]["verdict"]["held"] if one["who"] == "user"}
    assert held == {"kernels", "copies", "gpu_time"}
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [(one["variant"], one["score"]["held"], one["score"]["surprises"]) for one in entries] == [
        ("naive", 3, 1),
        ("naive_inplace", 3, 1),
    ]
    assert entries[0]["seal"] == naive["guess"]["seal"]
    assert "You had 6 of 8 guesses right; over time 6 of 8" in result.stderr
    assert f"Journal: {journal}" in result.stderr
    again = asked("5\n", "--variant", "naive", journal=journal)
    assert "You had 1 of 1 guess right; over time 7 of 9" in again.stderr


def test_the_textbook_guess_is_sealed_before_and_told_after_the_question(tmp_path):
    result = asked("5\n\n\n\n", "--variant", "naive", journal=tmp_path / "j")
    told = [
        result.stderr.index(word)
        for word in (
            "the textbook's guess is sealed",
            "kernels a forward:",
            "the textbook guesses 5 kernels, 0 copies",
            "the expert guesses 5 kernels, 1 copy",
            "you guess 5 kernels; sealed",
            "saw 5",
        )
    ]
    assert told == sorted(told)
    assert "5 kernels" not in result.stderr[: told[1]]


def test_nonsense_is_asked_about_once_more_and_then_skipped(tmp_path):
    answers = "abc\n5\n-3\nmany\n7\nflsh\nmask\nmasked_fill\n"
    result = asked(answers, "--variant", "naive", journal=tmp_path / "j")
    naive = json.loads(result.stdout)["attention"]["variants"][0]
    mine = {claim["key"]: claim["expected"] for claim in naive["guess"]["claims"] if claim["who"] == "user"}
    assert mine == {"kernels": 5, "dominant": ["masked_fill"]}
    said = " ".join(result.stderr.split())
    assert "'-3' is less than nothing" in said
    assert "there is no SDPA backend '7'" in said
    assert "did you mean flash?; skipped" in said
    assert "did you mean masked_fill?; once more" in said


def test_a_miss_that_the_textbook_shares_is_one_surprise(tmp_path):
    env = {"TRACEHUNCH_JOURNAL": str(tmp_path / "j")}
    args = ("--device", "recorded", "--ask", "--variant", "naive")
    text = run(*args, stdin="5\n0\n\n\n", env=env).stdout
    assert "1 guess did not hold, and is explained." in " ".join(text.split())
    assert text.count("0 copies, saw 1 copy") == 1
    assert "you and the textbook guessed 0 copies" in text
    surprises = json.loads(run(*args, "--format", "json", stdin="5\n0\n\n\n", env=env).stdout)["attention"]
    assert len(surprises["surprises"]) == 1
    text = run(*args, stdin="5\n2\n\n\n", env=env).stdout
    assert "2 guesses did not hold" in " ".join(text.split())


def test_empty_answers_and_the_end_of_the_input_skip(tmp_path):
    result = asked("\n", "--variant", "naive", "--variant", "sdpa_flash", journal=tmp_path / "j")
    assert result.exit_code == 0
    for variant in json.loads(result.stdout)["attention"]["variants"]:
        assert {claim["who"] for claim in variant["guess"]["claims"]} == {"textbook"}
    assert not (tmp_path / "j").exists()
    assert result.stderr.count("Your guess?") == 1
    assert "sdpa_flash (recorded): guess 1 kernel" in result.stderr


def test_a_journal_that_cannot_be_written_is_told_before_the_work(tmp_path):
    (tmp_path / "file").touch()
    result = asked("5\n", journal=tmp_path / "file" / "journal.jsonl")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "TRACEHUNCH_JOURNAL" in result.stderr


@needs_torch
def test_on_a_cpu_leaf_ops_are_asked_about(tmp_path):
    env = {"TRACEHUNCH_JOURNAL": str(tmp_path / "j")}
    result = run(*SMALL, "--ask", "--variant", "naive", stdin="5\nnone\n", env=env)
    assert "leaf ops (ops without children) a forward:" in result.stderr
    assert "right: backend none" in result.stderr
    assert "wrong: 5 leaf ops; it is" in result.stderr
