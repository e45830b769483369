"""The state of one task of a ledger, without reading all of it where what to read is remembered."""

import orjson

from acl.task_rows import Remembered, Watch, look_up
from ledger import LedgerView, Recorded, RunState, fold, tlog
from ledger.codec import Header, decode_event
from ledger.errors import LedgerDamaged, RunNotFound
from ledger.events import TasksSelected


def state_with(view: LedgerView, task_id: str) -> RunState:
    """A state that is right about this task and the run itself; it may know of no other task."""
    remembered = look_up(view, task_id)
    state = None if remembered is None else _partly(view, task_id, remembered)
    if state is not None:
        return state
    watch = Watch(view)
    state = fold(watch.over(view.events()))
    watch.keep(state)
    return state


def _partly(view: LedgerView, task_id: str, remembered: Remembered) -> RunState | None:
    """Fold only what concerns the task; None where the ledger is not what is remembered of it."""
    found = []
    try:
        for rows, task in ((remembered.run, None), (remembered.task, task_id)):
            found += [(view.event(seq), task) for seq in rows.rows]
        if remembered.task.selected is not None:
            found.append((_selected(view, *remembered.task.selected), None))
    except (LedgerDamaged, RunNotFound):
        return None
    if any(recorded.task != task for recorded, task in found):
        return None
    state = fold(sorted((recorded for recorded, _ in found), key=lambda one: one.seq))
    if task_id not in state.tasks:
        return None
    state.tasks[task_id].index = remembered.task.index
    state.frontier = tlog.Frontier.resume(remembered.size, remembered.nodes)
    state.last_ns = remembered.last_ns
    return state


def _selected(view: LedgerView, seq: int, position: int) -> Recorded:
    """The selection of one task alone: there may be a hundred thousand in one event."""
    head, body = view.raw(seq)
    header = Header.decode(head)
    if header.code != TasksSelected.code:
        raise RunNotFound(f"event {seq} selects no tasks")
    fields = orjson.loads(body)
    fields["tasks"] = fields["tasks"][position : position + 1]
    small = orjson.dumps(fields)
    event = decode_event(header._replace(body_length=len(small)), small)
    return Recorded(header, event, tlog.leaf_hash(head))
