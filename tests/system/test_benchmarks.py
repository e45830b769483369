"""The benchmarks run, and say all of their figures; what the figures are is nobody's test."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIGURES = {
    "record": (
        "bare / ours, wall, 40 tasks",
        "bare / ours, CPU, 40 tasks",
        "CPU of an event, at 20000 / at 10000 events",
    ),
    "size": (
        "written / final, 40 tasks, 16 at once",
        "final / solid archive, run of 40 tasks",
        "written / final, import of 40 tasks",
        "final / files in blocks of 4 KiB, AgentCompass runs",
        "final / solid archive, Inspect logs",
    ),
    "export": (
        "export / bare, details",
        "export / bare, jobs",
        "export / bare, agentcompass",
        "export / bare, jsonl",
        "CPU of a look, details: late in the run / early",
        "CPU of a look, jobs: late in the run / early",
    ),
    "reuse": (
        "reuse / copy, wall, 40 tasks",
        "reuse / bare, wall, 40 tasks",
        "reuse / bare, CPU, 40 tasks",
    ),
    "verify": (
        "verify / bare, 20 kB trajectories",
        "acl verify / bare, 20 kB trajectories",
        "verify / bare, small events",
        "acl verify / bare, small events",
        "memory of verify, 8000 events, MB",
        "memory of acl verify, 8000 events, MB",
    ),
    "replay": (
        "rows of large values read by a replay",
        "us of CPU an event, replay, 3000 attempts",
        "us of CPU an event, fold, 3000 attempts",
        "us of CPU an event, fold, a tenth of the events",
        "memory of a fold, 3000 attempts, MB",
        "ms of work to show one task",
        "ms of a whole process that shows one task",
    ),
    "startup": (
        "acl --version / python -c pass, wall",
        "acl --help / python -c pass, wall",
        "acl show / python -c pass, wall",
        "acl verify / python -c pass, wall",
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_benchmark_says_all_its_figures(name, tmp_path):
    file = tmp_path / "report.json"
    command = [sys.executable, "-m", f"benchmarks.{name}", "--quick", "--json", file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = {one["name"] for one in json.loads(file.read_text())["ratios"]}
    assert set(FIGURES[name]) <= told
    assert f"### {json.loads(file.read_text())['name']}" in done.stdout
