"""The reader in Python. ``run.py`` runs by itself and needs nothing but the standard library."""
