"""``python3 -m vllm_sim``."""

import sys

from .cli import main

sys.exit(main())
