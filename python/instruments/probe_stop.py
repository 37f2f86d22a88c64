"""What ends a probed script."""


class ProbeStop(BaseException):
    """The probe has seen what it was asked for.

    Neither an Exception nor a KeyboardInterrupt, so that handlers of the script let it pass.
    """
