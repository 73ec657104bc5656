"""Modules beside the tests that hold no tests can be imported by their name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
