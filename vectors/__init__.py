"""Golden vectors: the oracle's knowledge as files, for programs in any language.

`catalogue` lists the files and `generate` writes them. `operations`, `kernels`, `streams`, `typing`, `litmus` and
`digests` make their cases, for which `select` chooses inputs; `slow` and its neighbours derive every set a second time
for `verify`. docs/reference/vector-format.md says what is in a file.
"""
