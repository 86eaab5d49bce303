"""The workflow in examples/github: what it says is run as it says it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOW = ROOT / "examples" / "github" / "tracehunch.yml"
TRACE = ROOT / "tests" / "data" / "cpu" / "train_mlp.json.gz"


@pytest.fixture(scope="module")
def workflow() -> Any:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load(WORKFLOW.read_text())


def steps(workflow: Any) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_jobs_may_do_only_what_they_must(workflow: Any) -> None:
    assert workflow["permissions"] == {}
    assert workflow[True] == "pull_request"  # YAML 1.1 takes the key `on` for true
    jobs = workflow["jobs"]
    assert jobs["profile"]["permissions"] == {"contents": "read"}
    assert jobs["comment"]["permissions"] == {"pull-requests": "write"}
    assert not [step for step in jobs["comment"]["steps"] if "run" in step]
    checkout = next(step for step in steps(workflow) if step.get("uses", "").startswith("actions/checkout"))
    assert checkout["with"]["persist-credentials"] is False


def test_actions_are_githubs_own_and_pinned_to_a_major_version(workflow: Any) -> None:
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", one) for one in used)


def test_nothing_of_a_pull_request_is_pasted_into_a_script(workflow: Any) -> None:
    scripts = [step.get("run", "") + step.get("with", {}).get("script", "") for step in steps(workflow)]
    assert not [one for one in scripts if "${{" in one]


def run(command: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path, "GITHUB_ACTIONS": "true", **env},
    )


@pytest.fixture(scope="module")
def done(workflow: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The steps after the recording, on a recorded trace and with claims written as the workflow says."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copy(TRACE, folder / "trace.json.gz")
    advice = re.findall(r"^#   (tracehunch .*)$", WORKFLOW.read_text(), re.MULTILINE)
    assert len(advice) == 2
    made = run(advice[1], folder)
    assert made.returncode == 0, made.stderr
    named = {step["name"]: step["run"] for step in steps(workflow) if "run" in step}
    assert named["Record"] == advice[0]
    for name in ("Report", "Check"):
        result = run(named[name], folder, GITHUB_STEP_SUMMARY=str(folder / "summary.md"))
        assert result.returncode == 0, result.stderr
    return folder


def test_reports_are_where_the_comment_and_the_artifact_take_them_from(done: Path) -> None:
    assert (done / "report" / "comment.md").read_text().startswith("<!-- tracehunch:check -->\n")
    assert (done / "report" / "report.html").read_text().startswith("<!doctype html>")
    assert (done / "summary.md").read_text().startswith("<!-- tracehunch:check -->\n")


def test_surprise_fails_the_run(done: Path, workflow: Any, tmp_path: Path) -> None:
    shutil.copy(done / "trace.json.gz", tmp_path)
    (tmp_path / "hunch.toml").write_text('[[guess]]\nscope = "train_step"\nleaf_ops = 3\n')
    command = next(step["run"] for step in steps(workflow) if step.get("name") == "Check")
    result = run(command, tmp_path)
    assert result.returncode == 1
    assert "title=surprise%3A leaf_ops in train_step::" in result.stdout


@pytest.mark.parametrize("there", [True, False], ids=["updated", "made"])
def test_comment_is_kept_up_to_date(done: Path, workflow: Any, *, there: bool) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine to run the workflow's script")
    script = next(
        step["with"]["script"] for step in steps(workflow) if "github-script" in step.get("uses", "")
    )
    comments = [
        {"id": 1, "user": {"type": "User"}, "body": "<!-- tracehunch:check -->\nnot the bot's"},
        {"id": 2, "user": {"type": "Bot"}, "body": "another bot"},
    ]
    if there:
        comments.append({"id": 3, "user": {"type": "Bot"}, "body": "<!-- tracehunch:check -->\nold"})
    harness = f"""
      const calls = [];
      const issues = {{ listComments: "list",
        updateComment: async (one) => calls.push(["update", one]),
        createComment: async (one) => calls.push(["create", one]) }};
      const github = {{ rest: {{ issues }}, paginate: async (what, how) => {json.dumps(comments)} }};
      const context = {{ repo: {{ owner: "o", repo: "r" }}, issue: {{ number: 7 }} }};
      (async () => {{ {script} }})().then(() => console.log(JSON.stringify(calls)));
    """
    result = subprocess.run([node, "-e", harness], cwd=done, capture_output=True, text=True, check=True)
    [[what, how]] = json.loads(result.stdout)
    assert how["body"] == (done / "report" / "comment.md").read_text()
    assert (how["owner"], how["repo"]) == ("o", "r")
    if there:
        assert (what, how["comment_id"]) == ("update", 3)
    else:
        assert (what, how["issue_number"]) == ("create", 7)
