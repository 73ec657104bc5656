"""Sweeps: every input of an operation, or a sample of them, run on a backend and judged.

`domain` says which inputs, `job` runs and judges a chunk of them, `engine` spreads chunks over an executor and keeps
the state of a sweep that takes longer, `record` makes one JSON record of everything.
"""
