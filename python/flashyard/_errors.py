"""Exceptions of Flashyard."""

from __future__ import annotations


class FlashyardError(Exception):
    """A run that failed, or a mistake of the program."""


class ScenarioError(FlashyardError, ValueError):
    """A mistake in a scenario, or in what is asked for beside it.

    Attributes:
        key: path of the key that is wrong, such as ``drive.cores``, where it is one key.
        origin: the file, or where else the text comes from; the message has line and column.
    """

    def __init__(self, message: str, key: str | None = None, origin: str | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.origin = origin

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[str, str | None, str | None]]:
        return type(self), (str(self), self.key, self.origin)


#: The name under which the native part raises it.
ScenarioMistake = ScenarioError
