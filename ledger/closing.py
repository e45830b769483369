"""What is closed when a `with` block is left."""

from types import TracebackType
from typing import Self


class Closing:
    """A context manager that gives itself and calls `close` at the end, whatever happened."""

    def close(self) -> None:
        """Let go of what is held; may be called again."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
