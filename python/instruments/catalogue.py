"""Every instrument by the name that the service calls it by."""

from worker.instrument import Instrument

INSTRUMENTS: dict[str, Instrument] = {}
