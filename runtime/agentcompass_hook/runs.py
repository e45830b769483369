"""The runs that are followed in this process, and what each writing method tells of them."""

import logging
from collections.abc import Mapping
from concurrent.futures import Future
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from runtime.agentcompass_hook.book import RunBook
from runtime.agentcompass_hook.desk import Desk, Job
from runtime.agentcompass_hook.opening import open_ledger
from runtime.surroundings import Surroundings

_END_PATIENCE: Final = 30.0
"""Seconds that the end of a run waits for its ledger to be sealed."""

Told = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a call may wait for."""

    desk: Desk
    done: "Future[None]"
    patience: float | None = None


class Followed:
    """One run: its desk, and its book once the ledger is open."""

    def __init__(self, run: Path, log: logging.Logger) -> None:
        self.run = run
        self.benchmark = "unknown"
        self._log = log
        self._book: RunBook | None = None
        self.desk = Desk(self._say, self._abandon)

    def open(self, results_dir: Path, version: str) -> "Future[None]":
        """Queue the opening of the ledger."""

        def opening() -> None:
            opened = open_ledger(self.run, results_dir, version, Surroundings())
            self._book = RunBook(self.run, opened)
            self._log.info("acl: %s records this run", self.run / "ledger.sqlite")

        return self.desk.put(opening)

    def tell(self, method: str, *given: Any) -> Waiting:
        """Queue a call of the book."""

        def telling() -> None:
            if self._book is not None:
                getattr(self._book, method)(*given)

        return Waiting(self.desk, self.desk.put(telling))

    def refuse(self, why: str) -> None:
        """Record nothing more; the reason is told once."""

        def refusing() -> None:
            raise RuntimeError(why)

        job: Job = refusing
        self.desk.put(job)

    def _say(self, words: str) -> None:
        self._log.error("acl: the ledger of run %s: %s", self.run.name, words)

    def _abandon(self) -> None:
        if self._book is not None:
            self._book.abandon()


class LiveRuns:
    """Has one `after_…` method for each method that is followed.

    Each is given the object, the arguments by name, and what the method gave back; it reads what
    must be read at once, and gives what to wait for, or None for runs that are not followed.
    """

    def __init__(self, recipe_dir: Path, version: str, log: logging.Logger) -> None:
        self._recipe_dir = str(recipe_dir)
        self._version = version
        self._log = log
        self._runs: dict[Path, Followed] = {}

    def fail(self, why: str) -> None:
        """Something of ours went wrong in a call: the runs of this process are told no further."""
        for followed in self._runs.values():
            followed.refuse(why)

    def after_write_run_info(self, this: Any, told: Told, given: Any) -> Waiting | None:
        """A run begins, with its run_info.json on disk."""
        del given
        asked = told["request_payload"].get("metadata") or {}
        run = Path(told["output_dir"]).resolve()
        if self._recipe_dir not in (asked.get("recipe_dirs") or []) or run in self._runs:
            return None
        followed = self._runs[run] = Followed(run, self._log)
        followed.benchmark = str(told["request_payload"]["benchmark"]["id"])
        results_dir = Path(this._get_results_root()).resolve()
        return Waiting(followed.desk, followed.open(results_dir, self._version))

    def after_prepare(self, this: Any, told: Told, given: Any) -> Waiting | None:
        """The tasks are known, and which of them are taken over from another run."""
        del told
        followed = self._of(this.output_dir)
        if followed is None:
            return None
        tasks = [(task.task_id, task.category, deepcopy(task.ground_truth)) for task in given.tasks]
        return followed.tell("select", followed.benchmark, tasks, list(given.reused_results))

    def after_record_resolved_execution_plan(
        self, this: Any, told: Told, given: Any
    ) -> Waiting | None:
        """An attempt begins with its plan."""
        del this, given
        followed = self._of(told["output_dir"])
        if followed is None:
            return None
        plan = deepcopy(dict(told["plan_payload"]))
        return followed.tell("planned", told["task_id"], int(told["attempt"]), plan)

    def after_save_evaluation_checkpoint(self, this: Any, told: Told, given: Any) -> Waiting | None:
        """The harness gave back a result, which is judged next."""
        del given
        followed = self._of_params(this, told)
        checkpoint = told["checkpoint"]
        if followed is None or checkpoint.run_result is None:
            return None
        result = deepcopy(checkpoint.run_result)
        return followed.tell("returned", checkpoint.task_id, checkpoint.attempt, result)

    def after_save_retry_detail(self, this: Any, told: Told, given: Any) -> Waiting | None:
        """A try was discarded."""
        followed = self._of_params(this, told)
        if followed is None:
            return None
        file = Path(given).resolve()
        path = file.relative_to(followed.run).as_posix()
        return followed.tell("retried", path, file.read_bytes())

    def after_save(self, this: Any, told: Told, given: Any) -> Waiting | None:
        """An attempt ended, and its result was saved."""
        del given
        followed = self._of(this.layout.root)
        if followed is None:
            return None
        checkpoint = told["checkpoint"]
        key = checkpoint.key
        data = None
        if checkpoint.value is not None:
            home = this.layout.attempt_dir(key.task_id, key.attempt_index)
            data = (home / "result.json").read_bytes()
        return followed.tell("evaluated", key.task_id, key.attempt_index, data, checkpoint.error)

    def after_save_partial_result(self, this: Any, told: Told, given: Any) -> Waiting | None:
        """A task is over, and its files stand where they stay."""
        followed = self._of_params(this, told)
        if followed is None:
            return None
        directory = Path(given).resolve().parent.relative_to(followed.run)
        return followed.tell("task_saved", directory.as_posix())

    def after_save_results(self, this: Any, told: Told, given: Any) -> Waiting | None:
        """The report was written."""
        del given
        followed = self._of_params(this, told)
        return None if followed is None else followed.tell("measured")

    def after_save_analysis_summary(self, this: Any, told: Told, given: Any) -> Waiting | None:
        """The summary of the analyses was written, if there are any."""
        followed = self._of_params(this, told) if given else None
        return None if followed is None else followed.tell("analysed")

    def after_write_terminal_status(self, this: Any, told: Told, given: Any) -> Waiting | None:
        """The run ended."""
        del this, given
        followed = self._of(told["output_dir"])
        if followed is None:
            return None
        waiting = followed.tell("ended", str(told["status"]), str(told["error"] or ""))
        followed.desk.finish()
        del self._runs[followed.run]
        return Waiting(waiting.desk, waiting.done, _END_PATIENCE)

    def _of(self, run: Any) -> Followed | None:
        return None if run is None else self._runs.get(Path(run).resolve())

    def _of_params(self, this: Any, told: Told) -> Followed | None:
        if not self._runs:
            return None
        return self._of(this._get_output_directory(told["params"]))
