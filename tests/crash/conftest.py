"""Makes ``lives`` and ``disks`` importable by name: a process that is started anew has to find them too."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
