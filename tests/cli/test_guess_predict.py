"""``tracehunch guess sdpa`` and ``guess attention``: predictions on the command line."""

import gzip
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tracehunch.cli import main
from tracehunch.guess.hunch import parse_hunch

TRUTH = Path(__file__).parents[1] / "data" / "truth"
H200 = ("--gpu", "h200", "--torch", "2.11", "--cudnn", "91900")
A100 = ("--gpu", "a100-80-sxm", "--torch", "2.13")
CALL = {"B": 2, "H": 8, "S": 128, "D": 64, "dtype": "float16"}
NAMES = ["naive", "naive_inplace", "sdpa_math", "sdpa_efficient", "sdpa_flash", "sdpa_cudnn", "sdpa_auto"]


@pytest.fixture
def run(capsys):
    """Run the command line in this process: (exit code, stdout, stderr)."""

    def _run(*args):
        with pytest.raises(SystemExit) as stop:
            main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return _run


@pytest.fixture
def rows(tmp_path):
    """Write lines to a file."""

    def _rows(*lines):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines))
        return path

    return _rows


@pytest.fixture
def grid(tmp_path):
    path = tmp_path / "grid.jsonl"
    path.write_bytes(gzip.decompress((TRUTH / "sdpa_grid_h200.jsonl.gz").read_bytes()))
    return path


def predicted(run, *args):
    code, out, _ = run("guess", "attention", *args, "--format", "json")
    assert code == 0
    return json.loads(out)["prediction"]


def by_name(prediction):
    return {one["name"]: one for one in prediction["variants"]}


def test_the_grid_in_a_file(run, grid):
    code, out, err = run("guess", "sdpa", "--rows", grid, *H200)
    assert (code, err) == (0, "")
    given, answered = grid.read_text().splitlines(), out.splitlines()
    assert answered[0] == given[0]
    assert len(answered) == len(given) == 3001
    assert all(json.loads(line)["predicted"]["chosen"] == json.loads(line)["chosen"] for line in answered[1:])
    assert set(json.loads(answered[1])["predicted"]) == {
        "chosen", "flash", "efficient", "cudnn", "reasons", "raises", "kernels", "copies", "memsets",
    }  # fmt: skip


@pytest.mark.parametrize("verb", ["sdpa", "attention"])
def test_lines_on_stdin(verb):
    line = json.dumps(CALL | {"backend": "auto"})
    done = subprocess.run(
        [sys.executable, "-m", "tracehunch", "guess", verb, "--rows", "-", *H200],
        input=f"{line}\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["predicted"]["kernels"] == 1
    assert done.stderr == ""


def test_no_torch_is_imported(rows):
    code = (
        "import sys\nfrom tracehunch.cli import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\nassert 'torch' not in sys.modules"
    )
    for args in (
        ("sdpa", "--rows", rows(CALL), *H200),
        ("attention", "--rows", rows(CALL | {"backend": "math"}), *H200),
        ("attention", *A100),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, "guess", *map(str, args)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_rows_go_to_a_file_but_never_over_their_own(run, rows, tmp_path):
    path = rows(CALL | {"backend": "flash"})
    code, out, err = run("guess", "attention", "--rows", path, *H200, "-o", tmp_path / "out.jsonl")
    assert (code, out) == (0, "")
    assert "wrote" in err
    assert json.loads((tmp_path / "out.jsonl").read_text())["predicted"]["backend"] == "flash"
    code, _, err = run("guess", "attention", "--rows", path, *H200, "-o", path)
    assert code == 2
    assert "will not overwrite" in err


@pytest.mark.parametrize("verb", ["sdpa", "attention"])
@pytest.mark.parametrize(
    "line", ["nonsense", '{"B": 1, "backend": "math"}', json.dumps(CALL | {"dtype": "x"})]
)
def test_a_bad_line_is_one_error_with_its_number(run, rows, verb, line):
    code, out, err = run("guess", verb, "--rows", rows(CALL | {"backend": "math"}, line), *H200)
    assert (code, out) == (2, "")
    assert err.startswith("tracehunch: line 2: ") or "no backend" in err
    assert err.count("\n") == 1


def test_a_file_that_is_not_there_and_one_that_is_no_text(run, tmp_path):
    code, _, err = run("guess", "sdpa", "--rows", tmp_path / "none", *H200)
    assert code == 2
    assert "cannot read" in err
    (tmp_path / "bytes").write_bytes(b"\n\xff\xfe")
    code, _, err = run("guess", "sdpa", "--rows", tmp_path / "bytes", *H200)
    assert code == 2
    assert "line 2: no UTF-8" in err


def test_no_lines_are_said(run, rows):
    code, out, err = run("guess", "sdpa", "--rows", rows(), *H200)
    assert (code, out) == (0, "")
    assert "has no lines" in err


def test_the_published_a100(run):
    found = by_name(predicted(run, *A100))
    assert list(found) == NAMES
    numbers = {name: one["predicted"] for name, one in found.items()}
    assert [one["kernels"] + one["copies"] for one in numbers.values()] == [6, 5, 20, 1, 1, 1, 1]
    assert numbers["sdpa_auto"]["backend"] == "flash"
    published = {
        "naive_inplace": 1955, "sdpa_math": 7239, "sdpa_efficient": 277.9, "sdpa_flash": 146.8,
        "sdpa_cudnn": 186.3,
    }  # fmt: skip
    for name, us in published.items():
        assert numbers[name]["low_us"] <= us <= numbers[name]["high_us"]


def test_the_table_fits_80_columns_and_is_plain(run):
    code, out, _ = run("guess", "attention", *A100)
    assert code == 0
    assert max(len(line) for line in out.splitlines()) <= 80
    assert "\x1b" not in out
    for name in NAMES:
        assert f"  {name} " in out
    assert "takes flash: the first of flash" in out
    assert "nothing was measured on A100" in " ".join(out.split())


def test_why_others_were_refused_and_what_is_known_to_go_wrong(run):
    prediction = predicted(run, *A100, "--dtype", "float32", "--kv-heads", "4", "--variant", "sdpa_auto")
    (auto,) = prediction["variants"]
    assert prediction["workload"]["kv_heads"] == 4
    assert "float32" in auto["refused"]["flash"][0] + auto["refused"]["flash"][-1]
    assert any(reason.startswith("flash refuses: ") for reason in auto["reasons"])
    (cudnn,) = predicted(run, *H200, "--variant", "sdpa_cudnn")["variants"]
    assert cudnn["hazards"][0]["links"]


def test_a_variant_that_raises_says_so(run):
    flash = by_name(predicted(run, *A100, "--dtype", "float32"))["sdpa_flash"]
    assert flash["predicted"] == {"raises": "No available kernel. Aborting execution.", **no_kernels(flash)}
    _, out, _ = run("guess", "attention", *A100, "--dtype", "float32", "--variant", "sdpa_flash")
    assert "raises" in out
    assert "No available kernel" in out


def no_kernels(one):
    return {key: 0 for key in ("kernels", "copies", "memsets") if key in one["predicted"]}


def test_causal_or_full_and_the_clock(run):
    shape = ("--batch", 1, "--heads", 2, "--seq", 64, "--head-dim", 32, "--variant", "sdpa_flash")
    (causal,) = predicted(run, *H200, *shape)["variants"]
    (full,) = predicted(run, *H200, *shape, "--full")["variants"]
    (host,) = predicted(run, *H200, *shape, "--clock", "host")["variants"]
    assert causal["predicted"]["flops"] < full["predicted"]["flops"]
    assert causal["predicted"]["gpu_time_us"] < host["predicted"]["gpu_time_us"]


@pytest.mark.parametrize(
    ("variant", "trace"),
    [(name, name) for name in NAMES],
)
def test_a_hunch_holds_on_the_recorded_h200(run, h200, tmp_path, variant, trace):
    path = tmp_path / "hunch.toml"
    options = ("--gpu", "NVIDIA H200", "--torch", "2.11.0+cu130", "--variant", variant, "-o", path)
    assert run("guess", "attention", *options)[0] == 0
    hunch = parse_hunch(path.read_text())
    assert not hunch.edited
    assert {claim.who for claim in hunch.guess.claims} == {"expert"}
    code, out, err = run("check", path, h200 / f"seeds/{trace}.json.gz", "--fail-on", "error")
    assert code == 0, out
    assert "counts may differ" not in err
    assert "guessed" not in out


def test_several_variants_in_one_hunch_have_scopes_of_their_own(run):
    _, out, _ = run("guess", "attention", *A100, "--format", "toml")
    assert {table["scope"] for table in tomllib.loads(out)["guess"]} == set(NAMES)


def test_a_hunch_without_claims_is_an_error(run):
    options = ("--dtype", "float32", "--variant", "sdpa_flash", "--format", "toml")
    code, out, err = run("guess", "attention", *A100, *options)
    assert (code, out) == (2, "")
    assert "nothing to claim" in err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--gpu", "h2000", "--torch", "2.13"), "GPU 'h2000' is not known; did you mean h200?"),
        (("--gpu", "h100", "--torch", "3.0"), "torch '3.0' is not among the versions"),
        (("--gpu", "a100", "--torch", "2.13"), "may be several"),
        (("--gpu", "h200", "--torch", ""), "no torch version"),
        ((*A100, "--kv-heads", "3"), "use --kv-heads 1, 2, 4, 8, 16"),
        ((*A100, "--seq", "0"), "--seq 0 is no size"),
        ((*A100, "--cudnn", "919"), "919 is no cuDNN version"),
        ((*A100, "--variant", "flash"), "is not one of"),
        ((*A100, "-o", "x.yaml"), "names no format"),
        (
            (*A100, "--rows", "-", "--seq", "4", "--full"),
            "--seq, --causal/--full and --rows exclude each other",
        ),
        (("--torch", "2.13"), "Missing option '--gpu'"),
        (("--gpu", "h200"), "Missing option '--torch'"),
    ],
)
def test_mistakes_are_told(run, args, says):
    code, out, err = run("guess", "attention", *args)
    assert (code, out) == (2, "")
    assert says in err or set(says.split(" and ")[0].split(", ")) <= set(err.replace(",", "").split())


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("atention",), "cannot guess 'atention'; did you mean attention?"),
        (("weather",), "there are MODULE:FUNCTION, sdpa, attention, --from TRACE and --why TRACE"),
        ((__file__,), f"{__file__} is a program; name what to run: tracehunch guess {__file__}:FUNCTION"),
        ((str(TRUTH),), "is a file; did you mean tracehunch guess --from"),
        (("attention", "--torch", "2.11"), "Missing option '--gpu': what to guess for, as --gpu h200"),
        (("attention", "--gpu", "rtx9999", "--torch", "2.11"), "'rtx9999' is not known; use one of a10"),
        (("attention", "--gpu", "h20", "--torch", "2.11"), "did you mean h200?"),
        (
            ("--times", "sdpa", "--rows", "-", *H200),
            "options of --from and --why do not go with 'guess sdpa'",
        ),
        ((), "Missing option '--from'"),
    ],
)
def test_the_group_tells_what_was_meant(run, args, says):
    code, out, err = run("guess", *args)
    assert (code, out) == (2, "")
    assert says in err


def test_absurd_sizes_say_that_memory_is_short(run):
    code, out, _ = run("guess", "attention", *H200, "--seq", 10**12)
    assert code == 0
    assert "out of memory: inputs" in out
    code, _, err = run("guess", "attention", *H200, "--heads", 10**12, "--kv-heads", 7)
    assert code == 2
    assert "is not a multiple" in err


@pytest.mark.parametrize(
    ("gpu", "version"), [("h200", "2.13.0+cpu"), ("h200", "2.13.0+rocm6.4"), ("mi300x", "2.13.0+cu130")]
)
def test_a_build_that_does_not_run_on_the_gpu_is_refused(run, gpu, version):
    code, out, err = run("guess", "attention", "--gpu", gpu, "--torch", version)
    assert (code, out) == (2, "")
    assert f"torch {version} does not run on" in err


def test_cudnn_is_no_matter_on_amd_and_has_versions(run):
    code, _, err = run("guess", "attention", "--gpu", "mi300x", "--torch", "2.13", "--cudnn", 91900)
    assert code == 0
    assert "--cudnn changes nothing" in err
    assert run("guess", "attention", "--gpu", "h200", "--torch", "2.13", "--cudnn", 99999999999)[0] == 2
