"""Isolation of a worker: what the kernel offers, one module per layer.

`sandbox/README.md` is the theory of operation; `sandbox/policy.json` holds
every limit, path and denied call as data.
"""
