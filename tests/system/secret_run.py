"""A run in which everything that can hold text holds a secret, and fields that only look like one.

Which places there are is written down once, in `Planter`: each gives a secret of its own, so that
a test can say which of them came through.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from exporters.live import LiveExport
from ledger.events import ErrorInfo, Usage
from ledger.state import RunState
from runtime.contracts import (
    Analysis,
    AttemptContext,
    BaseAnalyzer,
    ExecutionPlan,
    StageError,
    Task,
)
from runtime.llm import CallEnd, CallStart
from runtime.models import RunRequest
from runtime.redact import Redactor
from runtime.results import Evaluation, MetricResult, RequestOutcome, RunResult
from runtime.runner import run
from runtime.surroundings import Surroundings
from tests.fake_plugins import JUDGE, Listed, Scripted, at_once, plugins, task

ORDINARY: dict[str, Any] = {
    "max_tokens": 512,
    "prompt_tokens": 7,
    "time_to_first_token": 0.25,
    "stop_token": "</s>",
    "eos_token": "<eos>",
    "pad_token": "<pad>",
    "bos_token": "<bos>",
    "primary_key": "row-1",
    "cache_key": "prompt-cache-17",
    "answer_key": "B",
    "sort_key": "score",
    "foreign_key": "task.id",
    "wrap_api_key": "yes",
    "keyboard": "qwerty",
    "monkey": "a bare key in a word",
    "tokenizer": "bpe",
    "author": "somebody",
    "password": "",
    "secret": None,
    "api_key": "${API_KEY}",
    "text": "The key to the door; a token of love; pass@k; bearer of news. key=value token == x",
    "code": "key_token: str = next(tokens)  # api_key=self.api_key",
}
MEASURES = {"output_tokens": 12, "api_key_lookups": 3, "secret": 0.5, "token": 4}


class Planter:
    """Makes secrets, and remembers in which place each was planted."""

    def __init__(self) -> None:
        self.planted: dict[str, str] = {}

    def __call__(self, place: str) -> str:
        """A secret of no known shape; the same one whenever the place is asked for again."""
        digest = hashlib.sha256(place.encode()).hexdigest()[:18]
        return self.planted.setdefault(place, f"Zq{digest}Vx")

    def shaped(self, place: str, before: str) -> str:
        """A secret that is known by its shape alone."""
        digest = hashlib.sha256(place.encode()).hexdigest()[:32]
        return self.planted.setdefault(place, f"{before}{digest}")


def the_environ(secret: Planter) -> dict[str, str]:
    """Environment variables, of which two have telling names."""
    return {
        "DEPLOY_PASSWORD": secret("environment variable"),
        "CI_JOB_TOKEN": secret("second environment variable"),
        "EDITOR": "some-ordinary-editor",
    }


def the_request(secret: Planter) -> RunRequest:
    return RunRequest.model_validate(
        {
            "benchmark": {
                "id": "listed",
                "params": {"hub": {"accessToken": secret("benchmark parameter")}, **ORDINARY},
            },
            "harness": {
                "id": "scripted",
                "params": {
                    "headers": {"X-Anything": secret("header in a harness parameter")},
                    "command": f"agent --token={secret('command line in a parameter')} --fast",
                    f"password={secret('key of a parameter')}": 1,
                },
            },
            "environment": {
                "id": "rooms",
                "env_variables": {"PLAIN_NAME": secret("env_variables")},
                "resources": {"registry": {"password": secret("resources")}},
                "setup": {"run": [f"export DB_PASSWORD={secret('assignment in a list')}"]},
            },
            "model": {
                "id": "none",
                "api_key": secret("api_key of the model"),
                "base_url": f"https://user:{secret('user:password in a URL')}@host/v1",
                "params": {"extra_headers": {"Authorization": f"Bearer {secret('bearer')}"}},
            },
            "execution": {"task_concurrency": 1, "max_retries": 1, "k": 2},
            "output": {"run_id": "planted"},
            "metadata": {"request_name": f"nightly token={secret('name of the request')}"},
        }
    )


def conversation(secret: Planter, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """A trajectory with headers, tool arguments as JSON text, and observations."""
    arguments = {
        "url": f"https://u:{secret('URL in tool arguments')}@h/path?q=1",
        "headers": {"Authorization": secret("header in tool arguments")},
        "body": {"clientSecret": secret("secret in tool arguments"), "max_tokens": 5},
        "nested": json.dumps({"api_key": secret("JSON text inside JSON text")}),
    }
    call = {"id": "c1", "function": {"name": "http", "arguments": json.dumps(arguments)}}
    deep: Any = {"apiKey": secret("forty levels deep")}
    for _ in range(40):
        deep = {"inside": [deep]}
    return [
        {"role": "system", "content": f"Use {environ['DEPLOY_PASSWORD']} to log in."},
        {"role": "assistant", "tool_calls": [call], "reasoning": ["plain", 1, None]},
        {
            "role": "tool",
            "content": f"HTTP/1.1 200\nSet-Cookie: sid={secret('cookie in an observation')}; Path=/\n",
            "raw": json.dumps({"token": secret("JSON text of an observation")}),
        },
        {
            "role": "tool",
            "content": f"repr: 'x\\nsk-{secret.shaped('key behind an escape', 'live')}'",
        },
        {"role": "user", "content": secret.shaped("key by its shape", "ghp_")},
        {"role": "user", "content": [{"text": f"Bearer {secret('bearer in a message')}"}]},
        {f"authorization: {secret('key of an object')}": "value", **ORDINARY},
        {environ["CI_JOB_TOKEN"]: "an environment variable as a key", "deep": deep},
        {
            "pem": f"-----BEGIN PRIVATE KEY-----\n{secret.shaped('PEM', 'MIIE') * 3}\n-----END PRIVATE KEY-----"
        },
    ]


class Agent:
    """Makes calls, uses tools, logs, leaves a file, and fails in several ways."""

    def __init__(self, secret: Planter, environ: Mapping[str, str]) -> None:
        self.secret = secret
        self.environ = environ

    async def __call__(self, t: Task, context: AttemptContext) -> Any:
        secret = self.secret
        if t.task_id == "raises":
            raise RuntimeError(f"login failed: password={secret('exception')}")
        if t.task_id == "retried" and context.retry == 0:
            raise StageError("sandbox_failed", f"no sandbox at https://a:{secret('retry')}@h/")
        if context.attempt == 1 and t.task_id == "whole":
            await self._call(context)
            self._log()
        assert context.session is not None
        lines = f"AWS_SECRET_ACCESS_KEY={secret('file that was left')}\nMAX_TOKENS=9\n"
        await context.session.write_text(".env", lines)
        await context.tool(
            "bash",
            arguments=json.dumps({"cmd": "login", "password": secret("arguments of a tool")}),
            output=f"ok, refresh_token: {secret('output of a tool')}",
        )
        return RunResult(
            t.task_id,
            final_answer={"said": f"the password={secret('answer')} is mine", **ORDINARY},
            trajectory=conversation(secret, self.environ),
            artifacts={"note": f"secret={secret('artifacts of a result')}"},
            metrics=dict(MEASURES),
            telemetry={"proxy-authorization": secret("telemetry")},
            meta={"credentials": {"user": secret("meta")}},
            extra={"session_jwt": secret("extra"), "kept": ORDINARY},
        )

    async def _call(self, context: AttemptContext) -> None:
        secret = self.secret
        params = {"extra_headers": {"X-Api-Key": secret("parameters of a call")}}
        messages = [{"role": "user", "content": f"api_key={secret('message of a call')}"}]
        await context.calls.started(CallStart("one", 0, "p", "m", params, messages))
        response = {"choices": [{"text": f"token={secret('response of a call')}"}]}
        error = ErrorInfo(code="x", message=f"401 for Bearer {secret('error of a call')}")
        now = "2026-01-01T00:00:00Z"
        usage = Usage(input_tokens=3, output_tokens=4)
        await context.calls.finished(
            CallEnd("one", False, response, usage, 0.5, "table", now, now, 1.0, None, "r", error)
        )

    def _log(self) -> None:
        secret = self.secret
        log = logging.getLogger("some.plugin")
        log.warning("connecting with password=%s", secret("log line"))
        logging.getLogger("runtime.plugin").info("%s", self.environ["DEPLOY_PASSWORD"])
        try:
            raise ValueError(f"Bearer {secret('traceback in the log')}")
        except ValueError:
            log.exception("it failed")


class Planted(Listed):
    """Puts secrets into plans, files, verdicts and metrics."""

    def __init__(self, secret: Planter, meanwhile: Callable[[], object]) -> None:
        note = {"note": f"passphrase: {secret('metadata of a task')}", **ORDINARY}
        super().__init__(
            [task(name, metadata=note) for name in ("whole", "raises", "retried", "unjudged")]
        )
        self.secret = secret
        self.meanwhile = meanwhile

    def build_plan(self, task: Task, plan: ExecutionPlan) -> ExecutionPlan:
        plan.benchmark = {"apiKey": self.secret("plan"), "primary_key": "id"}
        return plan

    async def collect_artifacts(self, task: Task, context: AttemptContext) -> list[str]:
        return [".env"]

    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        secret = self.secret
        if task.task_id == "unjudged":
            raise RuntimeError(f"verifier: secret={secret('exception of the verifier')}")
        if task.task_id == "retried":
            self.meanwhile()
        return Evaluation(
            JUDGE,
            correct=True,
            score=1.0,
            metrics=dict(MEASURES),
            reason=f"token={secret('reason')}",
            tests_status={"auth": {"any": secret("status of the tests")}},
            stdout=f"password: {secret('stdout')}",
            stderr=f"https://u:{secret('stderr')}@h/",
            ground_truth={"secret": secret("ground truth"), "answer_key": "C"},
            extra={"cookie": secret("extra of a verdict")},
        )

    def aggregate_metrics(self, state: RunState, metrics: MetricResult) -> MetricResult:
        told = {**metrics.extra, "note": f"api_key={self.secret('metrics')}"}
        return metrics.model_copy(update={"extra": told})


class Looking(BaseAnalyzer):
    """Tells a secret in its details and in its error."""

    id = "looking"
    base_analyzer = "looking"

    def __init__(self, secret: Planter) -> None:
        self.secret = secret

    async def analysis(self, task: Task, result: RunResult, evaluation: Evaluation) -> Analysis:
        error = ErrorInfo(code="x", message=f"jwt={self.secret('error of an analyzer')}")
        return Analysis(
            is_badcase=False, details={"password": self.secret("analysis")}, error=error
        )


class Configured(Scripted):
    """Takes any parameters."""

    def build_config(self, params: Mapping[str, Any]) -> Any:
        return None


def planted_run(
    results: Path,
    secret: Planter,
    *,
    redactor: Redactor | None = None,
    meanwhile: Callable[[], object] = lambda: None,
    runtime: Mapping[str, Any] | None = None,
    run_id: str = "planted",
) -> RequestOutcome:
    """Run it all; `meanwhile` is called while the run is in the middle of it."""
    environ = the_environ(secret)
    command: Sequence[str] = ("acl", "run", "--model-param", f"api_key={secret('command')}")
    found = plugins(Planted(secret, meanwhile), Configured(Agent(secret, environ)), Looking(secret))
    wanted = the_request(secret)
    if runtime is not None:
        fields = wanted.model_dump()
        fields["runtime"], fields["output"] = dict(runtime), {"run_id": run_id}
        wanted = RunRequest.model_validate(fields)
    return asyncio.run(
        run(
            wanted,
            results_dir=results,
            redactor=redactor,
            projectors=[lambda home: LiveExport(home, home=home)],
            command=command,
            surroundings=Surroundings(plugins=found, sleep=at_once, environ=environ),
        )
    )
