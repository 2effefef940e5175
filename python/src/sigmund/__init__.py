"""Reads a super-trace: the tables that Sigmund writes, as pandas data frames with their units and names.

>>> trace = sigmund.open("myserver.supertrace")      # doctest: +SKIP
>>> trace["thread_states"]                           # doctest: +SKIP

Figures (`states`, `latencies`, `percentiles`) need pandas; pictures (`gantt`, `latency_cdf`, `states_chart`)
need matplotlib too, which is imported when the first picture is drawn.
"""

from sigmund.clock import Clock
from sigmund.errors import (
    MissingTableError,
    NotASuperTraceError,
    SchemaError,
    SchemaVersionError,
    SigmundError,
    UnknownNameError,
    UnreadableError,
)
from sigmund.latency import latencies, percentiles
from sigmund.names import pattern
from sigmund.pictures import gantt, latency_cdf, states_chart
from sigmund.states import states
from sigmund.trace import SuperTrace, open

__all__ = [
    "Clock",
    "MissingTableError",
    "NotASuperTraceError",
    "SchemaError",
    "SchemaVersionError",
    "SigmundError",
    "SuperTrace",
    "UnknownNameError",
    "UnreadableError",
    "gantt",
    "latencies",
    "latency_cdf",
    "open",
    "pattern",
    "percentiles",
    "states",
    "states_chart",
]
