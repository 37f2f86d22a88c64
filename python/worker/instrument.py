"""What an instrument is: a function of the service's own that runs in the worker, after the code of a cell.

The worker knows no instrument. The zygote imports those that there are by
name, so that every worker has them without opening a file.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: The module that the zygote imports; its `INSTRUMENTS` maps names to instruments.
CATALOGUE = "instruments.catalogue"


@dataclass(frozen=True, slots=True)
class Scene:
    """Where an instrument works and where it writes what it finds.

    Attributes:
        values: The variables of the cell: the `__dict__` of its `__main__`.
        work: Absolute path of the work folder, whatever the working folder is now.
        report: JSON values by name, sent as they are when the cell ends, also when it is
            interrupted or raises: write each finding when it is made.
    """

    values: dict[str, Any]
    work: str
    report: dict[str, Any] = field(default_factory=dict)


#: May raise anything; what it raises is told like an exception of the cell.
Instrument = Callable[[Scene, dict[str, Any]], None]


def find_instrument(name: str) -> Instrument:
    """The instrument of this name.

    Raises:
        LookupError: There is none.
    """
    known: Mapping[str, Instrument] = getattr(sys.modules.get(CATALOGUE), "INSTRUMENTS", {})
    if name not in known:
        raise LookupError(f"there is no instrument {name!r}; there are: {', '.join(known) or 'none'}")
    return known[name]
