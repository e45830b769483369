"""A model behind any OpenAI-compatible endpoint, asked once per try."""

# A protocol gives its methods more than each of them needs.
# ruff: noqa: ARG002

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, ValidationError

from ledger.errors import UsageError
from runtime.benchmarks.repair.benchmark import extract_source
from runtime.contracts import AttemptContext, BaseHarness, StageError, Task
from runtime.llm import DEFAULT_TIMEOUT_SECONDS, Completion, LLMClient
from runtime.models import Model
from runtime.results import RunResult


class OpenAIConfig(Model):
    """`system_prompt` goes before the task; `stream` asks for the answer piece by piece.

    Without `stream`, the parameters of the model decide. `timeout_seconds` is for one call.
    Temperature, seed and the like are parameters of the model, not of the harness.
    """

    system_prompt: str = ""
    stream: bool | None = None
    timeout_seconds: float = Field(default=DEFAULT_TIMEOUT_SECONDS, gt=0)


class OpenAIHarness(BaseHarness):
    """Sends the prompt of a task to the model and takes its answer.

    For tasks that are to repair a function, the answer is the code block that defines it. A call
    that fails is an error of the try, by the code that `runtime.provider_error` gives it.
    """

    id: ClassVar[str] = "openai"
    needs_model: ClassVar[bool] = True

    def build_config(self, params: Mapping[str, Any]) -> OpenAIConfig:
        """Parse the parameters; UsageError names the wrong one."""
        try:
            return OpenAIConfig.model_validate(dict(params))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            name = ".".join(map(str, fault["loc"]))
            raise UsageError(f"harness parameter {name}: {fault['msg']}") from None

    async def start_session(
        self, task: Task, config: OpenAIConfig, context: AttemptContext
    ) -> LLMClient:
        """Make the client; nothing is sent yet."""
        return LLMClient(
            context.request.model,
            context.calls,
            api_key=context.api_key,
            timeout_seconds=config.timeout_seconds,
        )

    async def run_task(
        self, task: Task, config: OpenAIConfig, session: LLMClient, context: AttemptContext
    ) -> RunResult:
        """Ask, leave a repaired function in the environment as `<entry>.py`, and answer."""
        messages = _messages(task, config)
        params = {} if config.stream is None else {"stream": config.stream}
        completion = await session.chat(messages, **params)
        entry = task.input.get("entry")
        answer: str | None = completion.text
        if isinstance(entry, str):
            answer = extract_source(completion.text, entry)
            if answer is not None and context.session is not None:
                await context.session.write_text(f"{entry}.py", answer)
        return RunResult(
            task.task_id,
            category=task.category,
            final_answer=answer,
            trajectory=[*messages, completion.message],
            metrics=_usage(completion),
            telemetry={
                "finish_reason": completion.finish_reason,
                "model": completion.response.get("model"),
                "provider": session.provider,
            },
        )

    async def close_session(self, session: LLMClient | None) -> None:
        """Close the connections."""
        if session is not None:
            await session.aclose()


def _messages(task: Task, config: OpenAIConfig) -> list[dict[str, Any]]:
    prompt = task.input.get("prompt")
    if not isinstance(prompt, str):
        raise StageError("unsupported_task", f"task {task.task_id!r} has no prompt for a model")
    system = [{"role": "system", "content": config.system_prompt}] if config.system_prompt else []
    return [*system, {"role": "user", "content": prompt}]


def _usage(completion: Completion) -> dict[str, int]:
    """The token counts that the provider gave; what it did not say is left out."""
    usage = completion.usage
    counts = {} if usage is None else usage.model_dump(exclude={"estimated"}, exclude_none=True)
    return {"calls": 1, **counts}
