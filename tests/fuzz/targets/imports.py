"""Result directories of other tools, every one of which may be anybody's."""

import hashlib
import json
import tarfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from exporters.details import LAYOUT, export_details
from exporters.identity import Identity
from exporters.write import write_tree
from ledger import LedgerView, fold
from ledger.errors import AclError
from ledger.store import Ledger
from runtime.importers import ImportReport, import_path
from runtime.plugins import EntryPoint, installed
from runtime.recorder import Recorder
from runtime.redact import Redactor
from runtime.replay import replay
from tests.compat.freeze import LEDGERS
from tests.fuzz import strings, trees
from tests.fuzz.bounds import memory_folder
from tests.fuzz.reached import ROOT
from tests.fuzz.target import TreeTarget, holds
from tests.fuzz.targets.ledger import broken
from tests.fuzz.trees import Tree

DATA = ROOT / "tests" / "data"
_MOST_FILES = 24


class Importing(TreeTarget):
    """Importers refuse by name, or make an intact ledger; the source stays as it is."""

    def __init__(self, name: str) -> None:
        self.name = f"import-{name}"
        self.format = name
        self.recipes = trees.Recipes(_BASES[name])
        self._before: Any = None
        self._is_sampled = False

    def prepare(self, data: bytes, home: Path) -> None:
        trees.write(self.recipes.tree(data), home / "source")
        self._before = trees.contents(home / "source")
        # What says little of the importer, and takes as long as it does. By the input alone.
        self._is_sampled = hashlib.sha256(data).digest()[0] < 64

    def run(self, data: bytes, home: Path) -> Iterable[str]:
        source = home / "source"
        # One file is given by itself, as who imports it would.
        files = [*source.iterdir()]
        given = files[0] if len(files) == 1 and self.format != "generic" else source
        try:
            said = self._imported(given, home / "results", None)
        except AclError as error:
            holds(not [*(home / "results").rglob("ledger.sqlite")], "a half import is left")
            said = [strings.shape(str(error)), *self._named(source, home / "named")]
        holds(trees.contents(source) == self._before, "the source changed")
        return said

    def _named(self, source: Path, results: Path) -> list[str]:
        """As who is sure of the format names it, since it could not be found out."""
        try:
            return self._imported(source, results, self.format)
        except AclError as error:
            return [strings.shape(str(error))]

    def _imported(self, path: Path, results: Path, known: str | None) -> list[str]:
        report = self._import(path, results, known)
        holds(broken(report.path) == [], f"imported, but {broken(report.path)}")
        with LedgerView.open(report.path) as view:
            equal = replay(view).equal
            if self._is_sampled:
                state = fold(view.events())
                files = export_details(state, view)
                write_tree(files, results / "out", identity=Identity.of(state), layout=LAYOUT)
        if self._is_sampled:
            holds(self._import(path, results, known).already, "imported twice")
        remarks = (strings.shape(one.reason) for one in report.unplaced)
        return [report.format, f"replay {equal}", *remarks]

    def _import(self, path: Path, results: Path, known: str | None) -> ImportReport:
        return import_path(path, results_dir=results, create=_create, format=known, points=_points)


@cache
def _points(group: str) -> tuple[EntryPoint, ...]:
    """What is installed does not change from one input to the next."""
    return tuple(installed(group))


def _create(directory: Path) -> Recorder:
    return Recorder(Ledger.create(directory), Redactor({}), patience=0.0)


# -- small sources of each format ------------------------------------------------------------------


def _archived(archive: Path, run: str, *parts: str) -> Tree:
    """Some files of a run in an archive: those whose path has one of `parts`, or all."""
    found: Tree = {}
    with tarfile.open(archive, "r:xz") as tar:
        for member in tar:
            name = member.name.removeprefix(f"{run}/")
            file = tar.extractfile(member) if member.isfile() else None
            wanted = "/" not in name or not parts or any(part in name for part in parts)
            if file is not None and name != member.name and wanted and len(found) < _MOST_FILES:
                found[name] = file.read()
    return found


def _agentcompass() -> Mapping[str, Tree]:
    runs = DATA / "agentcompass" / "runs.tar.xz"
    return {
        "fatal": _archived(runs, "k3-fatal", "fatal-503", "eval-error"),
        "killed": _archived(runs, "k3-sigkill"),
        "reuse": _archived(runs, "k3-reuse"),
    }


def _files(folder: str, *names: str) -> Mapping[str, Tree]:
    found: dict[str, Tree] = {}
    for path in sorted((DATA / folder).iterdir()):
        if path.stat().st_size < 30_000 and (not names or path.name in names):
            found[path.stem] = {path.name: path.read_bytes()}
    return found


def _atif() -> Mapping[str, Tree]:
    single = _files("atif")
    both = {name: data for tree in single.values() for name, data in tree.items()}
    return {**single, "both": both}


def _inspect() -> Mapping[str, Tree]:
    return _files("inspect")


def _details() -> Mapping[str, Tree]:
    found: dict[str, Tree] = {}
    for path in sorted(LEDGERS.glob("*.sqlite")):
        with memory_folder() as folder, LedgerView.open(path, pristine=True) as view:
            state = fold(view.events())
            target = Path(folder) / "out"
            files = export_details(state, view)
            write_tree(files, target, identity=Identity.of(state), layout=LAYOUT)
            held = trees.contents(target)
            found[path.stem] = {n: d for n, d in held.items() if isinstance(d, bytes)}
    return found


def _jobs() -> Mapping[str, Tree]:
    job = _archived(DATA / "harbor" / "jobs.tar.xz", "sample-job", "75aVcHZ", "D6s856v")
    more = DATA / "harbor" / "more.tar.xz"
    return {
        "sample": job,
        "solo": _archived(more, "solo"),
        "killed": _archived(more, "killed"),
        "variety": _archived(more, "variety"),
    }


def _jsonl(*values: Any) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def _generic() -> Mapping[str, Tree]:
    header = {"acl.generic": 1, "benchmark": "toy", "model": "m", "harness": "h", "run_id": "r1"}
    records = [
        {"task_id": "a", "attempt": 1, "correct": True, "score": 0.5, "category": "x"},
        {"task_id": "a", "attempt": 2, "correct": False, "final_answer": "4", "ground_truth": 5},
        {"task_id": "b", "attempt": 1, "correct": False, "error": "run_timeout: too slow"},
        {"task_id": "b", "attempt": 2, "evaluation_error": {"code": "judge", "message": "no"}},
        {"task_id": "c", "metrics": {"f1": 0.5}, "trajectory": [{"role": "user", "content": "x"}]},
    ]
    return {
        "lines": {"results.jsonl": _jsonl({**header, "k": 2, "records": 5}, *records)},
        "two": {"a.jsonl": _jsonl(header, records[0]), "b.jsonl": _jsonl(header, records[2])},
    }


def _lm_eval() -> Mapping[str, Tree]:
    time = "2026-01-21T03-44-18.458309"
    samples = [
        {
            "doc_id": number,
            "doc": {"question": f"q{number}"},
            "target": str(number),
            "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": {"until": ["\n"]}}},
            "resps": [[f" answer {number}"]],
            "filtered_resps": [f"answer {number}"],
            "filter": "none",
            "metrics": ["exact_match"],
            "doc_hash": f"{number:064x}",
            "prompt_hash": "p",
            "target_hash": "t",
            "exact_match": float(number % 2),
        }
        for number in range(4)
    ]
    whole = {
        "results": {"t": {"alias": "t", "exact_match,none": 0.5, "exact_match_stderr,none": 0.2}},
        "group_subtasks": {"t": []},
        "configs": {"t": {"metric_list": [{"metric": "exact_match", "aggregation": "mean"}]}},
        "versions": {"t": 1.0},
        "n-samples": {"t": {"original": 4, "effective": 4}},
        "config": {"model": "hf", "model_args": "pretrained=org/m-1,dtype=float"},
        "date": 1768964383.5,
    }
    name = f"samples_t_{time}.jsonl"
    return {
        "run": {f"results_{time}.json": json.dumps(whole).encode(), name: _jsonl(*samples)},
        "samples": {name: _jsonl(*samples)},
    }


def _swebench() -> Mapping[str, Tree]:
    names = ("astropy__astropy-1", "django__django-22", "django__django-23")
    home = "logs/run_evaluation/r1/mine__m-1"
    tree: Tree = {}
    for name in names[:2]:
        kinds = ("FAIL_TO_PASS", "PASS_TO_PASS", "FAIL_TO_FAIL", "PASS_TO_FAIL")
        told = {
            "patch_is_None": False,
            "patch_exists": True,
            "patch_successfully_applied": True,
            "resolved": name == names[0],
            "tests_status": {kind: {"success": ["t"], "failure": []} for kind in kinds},
        }
        tree[f"{home}/{name}/report.json"] = json.dumps({name: told}).encode()
        tree[f"{home}/{name}/run_instance.log"] = b"2026-01-02 03:04:05,678 - INFO - x\n"
        tree[f"{home}/{name}/patch.diff"] = b"diff --git a/x b/x\n"
        tree[f"{home}/{name}/test_output.txt"] = b"ok\n"
    lists: dict[str, Any] = {
        "completed": list(names[:2]),
        "incomplete": [],
        "empty_patch": [names[2]],
        "submitted": list(names),
        "resolved": [names[0]],
        "unresolved": [names[1]],
        "error": [],
    }
    told = {f"{kind}_ids": ids for kind, ids in lists.items()}
    told |= {f"{kind}_instances": len(ids) for kind, ids in lists.items() if kind != "incomplete"}
    told |= {"total_instances": 3, "schema_version": 2}
    tree["mine__m-1.r1.json"] = json.dumps(told).encode()
    predictions = [
        {"instance_id": name, "model_name_or_path": "mine/m-1", "model_patch": "diff"}
        for name in names
    ]
    return {
        "run": tree,
        "predicted": {**tree, "preds.jsonl": _jsonl(*predictions)},
        "listed": {**tree, "preds.json": json.dumps(predictions).encode()},
    }


def _tau_bench() -> Mapping[str, Tree]:
    whole = json.loads((DATA / "tau_bench" / "gpt-4o-airline.json").read_bytes())
    trials = [
        {
            "task_id": task,
            "reward": float(task),
            "info": {
                "task": {"user_id": "u", "instruction": "do", "actions": [{"name": "a"}]},
                "source": "user",
                "user_cost": 0.5,
                "reward_info": {"reward": float(task), "info": {}, "actions": []},
            },
            "traj": [{"role": "user", "content": "hi"}],
            "trial": trial,
        }
        for task in range(2)
        for trial in range(2)
    ]
    return {
        "published": {"gpt-4o-airline.json": json.dumps(whole[:3]).encode()},
        "made": {"run.json": json.dumps(trials).encode()},
    }


_BASES = {
    "agentcompass": _agentcompass,
    "atif": _atif,
    "details": _details,
    "generic": _generic,
    "inspect": _inspect,
    "jobs": _jobs,
    "lm_eval": _lm_eval,
    "swebench": _swebench,
    "tau_bench": _tau_bench,
}
IMPORTS: tuple[TreeTarget, ...] = tuple(map(Importing, _BASES))
