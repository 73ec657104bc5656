"""halfulp decides whether a kernel compiler computes what its language says it computes."""

__version__ = "0.1.0"
