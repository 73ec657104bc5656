"""The detection tables: every suspect, as a backend, put on trial by the suite itself."""
