"""Every sample is taken by one importer and no other, and garbage by none."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.foreign_sources import SHARED, recognised

FORMATS = ("generic", "lm_eval", "swebench", "tau_bench")
SAMPLES = {
    "agentcompass-1.0.1/k3-avg": "agentcompass",
    "atif": "atif",
    "harbor/binary-k5": "jobs",
    "harbor/sample-job": "jobs",
    "inspect/log_formats.eval": "inspect",
    "inspect/log_images.json": "inspect",
    "litellm/litellm-trajectory.jsonl": None,
    "litellm/01_mock_sync.json": None,
    "litellm": None,
    "lm_eval": "lm_eval",
    "swebench": "swebench",
    "swebench/logs": "swebench",
    "swebench/results.json": "swebench",
    "tau_bench": "tau_bench",
    "tau_bench/gpt-4o-airline.json": "tau_bench",
}
WORDS = (
    "task_id", "correct", "score", "reward", "traj", "trial", "results", "configs", "doc_id",
    "resps", "resolved_ids", "no_logs", "instance_id", "simulations", "info", "acl.generic",
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(("name", "wanted"), SAMPLES.items())
def test_each_sample_is_of_one_format(name, wanted):
    path = SHARED / name
    if not path.exists():
        pytest.skip("the samples are not at hand")
    assert recognised(path) == ([] if wanted is None else [wanted])


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(JSON | st.binary(max_size=60), st.sampled_from(["x.json", "x.jsonl", "report.json"]))
def test_nothing_that_a_file_holds_makes_recognition_fail(tmp_path, value, name):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    for path in tmp_path.iterdir():
        path.unlink()
    (tmp_path / name).write_bytes(data)
    assert len(recognised(tmp_path)) <= 1
    assert len(recognised(tmp_path / name)) <= 1
