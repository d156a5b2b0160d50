"""Makes ``reference_tokens`` and the tests' ``loopback`` importable by name."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(__file__)))
