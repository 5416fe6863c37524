"""A plugin for pytest: `.case` files as tests, where a project asks for it.

`quercus_cases = true` in the settings of pytest, or `--quercus-cases`, makes every case of every `.case` file a test.
Without either nothing is collected, and nothing of Quercus imported but this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from quercus.testing import Case


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("quercus")
    group.addoption("--quercus-cases", action="store_true", default=False, help="run the cases of .case files")
    parser.addini("quercus_cases", "whether .case files are run as tests", type="bool", default=False)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    asked = parent.config.getoption("--quercus-cases") or parent.config.getini("quercus_cases")
    if file_path.suffix != ".case" or not asked:
        return None
    found: pytest.Collector = CaseFile.from_parent(parent, path=file_path)
    return found


class CaseFile(pytest.File):
    """A `.case` file."""

    def collect(self) -> Iterator[pytest.Item]:
        from quercus.testing import CaseError, read

        try:
            cases = read(self.path)
        except CaseError as e:
            raise self.CollectError(str(e)) from None
        for case in cases:
            yield CaseItem.from_parent(self, name=case.name, case=case)


class CaseFailed(Exception):
    """A case did not give what it expects."""


class CaseItem(pytest.Item):
    """One case."""

    def __init__(self, *, case: Case, **given: Any) -> None:
        super().__init__(**given)
        self.case = case

    def runtest(self) -> None:
        from quercus.testing import run_case

        differences = run_case(self.case)
        if differences:
            raise CaseFailed("\n".join(differences))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CaseFailed):
            return f"{self.case.path}:{self.case.line}: {self.case.name}\n{excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line - 1, self.name
