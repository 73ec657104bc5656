"""The language, executable: formats, rounding, typing, and the set of results each operation may return.

Pure: no input or output, no backend, no pytest.
"""
