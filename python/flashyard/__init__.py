"""Flashyard: an open proving ground for disaggregated flash storage.

>>> import flashyard
>>> report = flashyard.run("demo", set={"designs": ["conv", "xbof"]}, progress=False)
>>> [design["name"] for design in report.designs]
['conv', 'xbof']
"""

from . import _native
from ._calls import (
    Request,
    ScenarioLike,
    Workload,
    age,
    fit,
    read_trace,
    reproduce,
    run,
    scenario_text,
    scenarios,
    schema,
    studies,
    to_toml,
    trace_info,
)
from ._errors import FlashyardError, ScenarioError
from ._progress import Progress
from ._results import Fit, Life, Report, Study
from ._sweep import Sweep, sweep
from ._table import ArrowTable, Table, Tables

__version__: str = _native.VERSION

__all__ = [
    "ArrowTable",
    "Fit",
    "FlashyardError",
    "Life",
    "Progress",
    "Report",
    "Request",
    "ScenarioError",
    "ScenarioLike",
    "Study",
    "Sweep",
    "Table",
    "Tables",
    "Workload",
    "age",
    "fit",
    "read_trace",
    "reproduce",
    "run",
    "scenario_text",
    "scenarios",
    "schema",
    "studies",
    "sweep",
    "to_toml",
    "trace_info",
]

_native.of_library(_native.__file__)
