"""What each step of a cube costs, in nanoseconds on the machine that it was calibrated on.

`python -m benchmarks.fit_cube` fits these to runs of cubes and prints this table anew. As with the planner's own
(`quercus.compiler.constants`), costs are compared with each other: their proportions matter.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class CubeConstants:
    retype: float = 0.9  # a match whose event is looked at again
    narrow: float = 0.9  # ... whose first and last times are compared
    forbid: float = 0.9  # ... for which a negation is answered
    tied: float = 25.0  # ... for which values tie the negation to the match
    keep: float = 2.6  # ... on which a condition is tested
    insert: float = 1.1  # ... for which the range of one more component is found
    result: float = 0.5  # a match with one more component
    trying: float = 5.0  # a candidate for one more component that conditions test
    behind: float = 1.5  # ... as its last one: matches of the source are looked at for each event
    reorder: float = 11.0  # a match of the source, where its last event changes: results are ordered by it
    project: float = 9.0  # a match without some of its components, once
    merge: float = 14.0  # a match in order with those of a delta
    gather: float = 2.2  # an event of a result, listed from those of the source
    search: float = 250.0  # ... for which a range is searched for, where there are few matches
    table: float = 4.0  # an event of the stream, where there are many, so that ranges are looked up
    act: float = 40000.0  # an action begins
    # a query alone, or a delta: beside what the planner's constants say
    start: float = 450000.0  # the engine begins
    step: float = 2.4  # an event is bound along a pointer
    single: float = 17.0  # ... as the last one, where a negation lies in between: no range goes out as a whole
    write: float = 1.0  # an event of a result; also where one more component stands at the end
    total: float = 25.0  # an event of a leaf, for each component, where matches are totalled without listing them


CALIBRATED = CubeConstants()
CLEARLY = 2.0  # how much more than listing running totals may cost: what they cost is certain, matches are estimated
LISTED = 0.95  # the part of listing that counts: for results that are known sooner, lists may take a twentieth longer
COUNTED = 0.02  # the part of listing that counting matches beforehand may take
FEW = 8.0  # events of the stream for each match: beyond, ranges are searched for one by one
