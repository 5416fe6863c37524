"""What each step of a cube costs, in nanoseconds on the machine that it was calibrated on.

As with the planner's own (`quercus.compiler.constants`), costs are compared with each other: their proportions matter.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class CubeConstants:
    retype: float = 3.0  # a match whose event is looked at again
    narrow: float = 2.0  # ... whose first and last times are compared
    forbid: float = 4.0  # ... for which a negation is answered
    tied: float = 20.0  # ... for which values tie the negation to the match
    keep: float = 10.0  # ... on which a condition is tested
    insert: float = 5.0  # ... for which the range of one more component is found
    result: float = 3.0  # a match with one more component
    trying: float = 6.0  # a candidate for one more component that conditions test
    reorder: float = 20.0  # a match of the source, where its last event changes: results are ordered by it
    project: float = 30.0  # a match without some of its components, once
    merge: float = 35.0  # a match in order with those of a delta
    write: float = 1.2  # an event of a result
    act: float = 10_000.0  # an action begins
    # a query alone, or a delta: beside what the planner's constants say
    start: float = 300_000.0  # the engine begins
    total: float = 20.0  # an event of a leaf, where matches are totalled without listing them


CALIBRATED = CubeConstants()
