"""What is shown or names a directory, without secrets: as the ledger has it."""

from ledger.errors import AclError
from ledger.events import ErrorInfo
from runtime.models import RunRequest
from runtime.redact import Redactor
from runtime.results import MetricResult


def public_names(request: RunRequest, redactor: Redactor) -> RunRequest:
    """`request` with no secret in what names directories: ids, run name and run ids.

    They are what a ledger records of them, so that a run is found again by what it says of itself.
    """

    def public(name: str) -> str:
        return redactor.redact_text(name)[0]

    output, runtime = request.output, request.runtime
    named = {"run_name": public(output.run_name), "run_id": public(output.run_id)}
    return request.model_copy(
        update={
            "benchmark": request.benchmark.model_copy(update={"id": public(request.benchmark.id)}),
            "model": request.model.model_copy(update={"id": public(request.model.id)}),
            "output": output.model_copy(update=named),
            "runtime": runtime.model_copy(update={"reuse_run_id": public(runtime.reuse_run_id)}),
        }
    )


def mask_error(error: AclError, redactor: Redactor) -> None:
    """Take the secrets out of what `error` says and of its hint."""
    error.message, _ = redactor.redact_text(error.message)
    error.hint, _ = redactor.redact_text(error.hint)
    error.args = (error.message, *error.args[1:])


def masked_info(info: ErrorInfo, redactor: Redactor) -> ErrorInfo:
    """`info` as it stands in an event: its words and its traceback without secrets."""
    kept, count = redactor.redact({"error": info.model_dump()})
    return ErrorInfo.model_validate(kept["error"]) if count else info


def masked_metrics(metrics: MetricResult, redactor: Redactor) -> MetricResult:
    """`metrics` as they stand in an event."""
    kept, count = redactor.redact(metrics.model_dump())
    return MetricResult.model_validate(kept) if count else metrics
