"""Backends that are right, or wrong in exactly one way: what the suite itself is put on trial with.

Modules in ``_code`` say what is done wrongly; the module beside each has the table of its suspects, and the backends.
"""
