"""Which run of a submission is meant: the seeds of its data and of its weights."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a script.

    Attributes:
        data_seed: Seeds everything that the evaluation draws: teacher, rows, noise, held-out rows. Agent code never
            learns it: whoever knew it could make the held-out rows.
        init_seed: The `seed` of config.json, which the script gives to `torch.manual_seed`; in [0, 2^31).
        kind: 0 or 1. A submission is graded on one run of each, so a task can tell two regimes apart.
    """

    data_seed: int
    init_seed: int
    kind: int
