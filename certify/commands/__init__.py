"""The subcommands of ``halfulp``: one module each, with ``add_parser`` and ``run``."""
