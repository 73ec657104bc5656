"""What the targets share: the language as a compiler reads it, and the lowering of every operation.

A kernel goes through ``frontend`` (source programs) and ``check`` (types). ``lowering`` says what each operation is in
abstract instructions (``code``), which every target writes in its own language. Nothing here judges a result.
"""
