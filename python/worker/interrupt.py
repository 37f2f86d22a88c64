"""What an interrupted cell feels: an exception in the main thread, named as a timeout."""


class StepTimeout(KeyboardInterrupt):
    """The step reached its deadline.

    A KeyboardInterrupt, so that `except Exception` in agent code lets it pass
    and everything that cleans up after Ctrl-C cleans up after it.
    """
