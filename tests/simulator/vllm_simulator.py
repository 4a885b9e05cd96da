#!/usr/bin/env python3
"""Run a simulated vLLM server: ``python3 vllm_simulator.py --port 8000``.  README.md has all options and commands."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from vllm_sim.cli import main

if __name__ == "__main__":
    sys.exit(main())
