from ledger.errors import UsageError
from ledger.events import ErrorInfo
from runtime.masking import mask_error, masked_info, public_names
from runtime.redact import Redactor
from tests.fake_plugins import request

SECRET = "correct-horse-battery"
REDACTOR = Redactor({"SERVICE_TOKEN": SECRET})


def test_names_without_secrets_stay_as_they_are() -> None:
    asked = request(model={"id": "org/model"}, output={"run_name": "a/b", "run_id": "r"})
    assert public_names(asked, REDACTOR) == asked


def test_what_names_directories_has_no_secrets_and_the_rest_is_left_alone() -> None:
    asked = request(
        model={"id": f"m-{SECRET}", "base_url": f"http://host/{SECRET}"},
        output={"run_name": f"x/{SECRET}", "run_id": SECRET},
        runtime={"reuse_run_id": SECRET},
    )
    public = public_names(asked, REDACTOR)
    assert public.model.id == "m-********"
    assert (public.output.run_name, public.output.run_id) == ("x/********", "********")
    assert public.runtime.reuse_run_id == "********"
    assert public.model.base_url == asked.model.base_url


def test_an_error_keeps_its_class_and_loses_its_secrets() -> None:
    error = UsageError(f"with {SECRET}", hint=f"not {SECRET}")
    mask_error(error, REDACTOR)
    assert str(error) == "with ********; not ********"
    assert SECRET not in repr(error)


def test_all_words_of_an_error_are_masked() -> None:
    info = ErrorInfo(code="x", message=SECRET, traceback=f"at {SECRET}", fatal=True)
    masked = masked_info(info, REDACTOR)
    assert (masked.message, masked.traceback, masked.fatal) == ("********", "at ********", True)
