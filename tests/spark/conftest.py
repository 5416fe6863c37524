"""One Spark session for all tests of the backend: starting it takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from quercus.backends.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET = "ignore:PySpark does not yet fully support pandas:FutureWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark says with every function over Arrow that it was not tested with this pandas; other warnings stay errors."""
    for item in items:
        if item.path.parent.name == "spark":
            item.add_marker(pytest.mark.filterwarnings(QUIET))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores of this machine, with few partitions and no files left behind."""
    place = tmp_path_factory.mktemp("spark")
    found = session(
        "local[2]",
        app="quercus tests",
        config={
            "spark.sql.shuffle.partitions": 3,
            "spark.default.parallelism": 2,
            "spark.driver.memory": "1g",
            "spark.sql.warehouse.dir": place / "warehouse",
            "spark.local.dir": place / "local",
        },
    )
    yield found
    found.stop()
