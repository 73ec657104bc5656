"""Atomics (``intent:11``): litmus programs, the memory model that judges them, and the catalogue of tests.

``program`` is the vocabulary and knows no answer; ``model`` holds the axioms, ``search`` enumerates executions.
"""
