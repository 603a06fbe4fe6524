"""Makes the helpers of this folder importable: pytest's importlib mode leaves test folders off the path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
