"""Every instrument by the name that the service calls it by."""

from worker.instrument import Instrument

from instruments.call import call
from instruments.collect_files import collect_files
from instruments.inspect_tensor import inspect_tensor
from instruments.run_script import run_script
from instruments.training_probe import training_probe
from instruments.variable_state import variable_state

INSTRUMENTS: dict[str, Instrument] = {
    "call": call,
    "run_script": run_script,
    "collect_files": collect_files,
    "inspect_tensor": inspect_tensor,
    "variable_state": variable_state,
    "training_probe": training_probe,
}
