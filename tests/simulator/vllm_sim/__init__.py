"""A stand-in for a vLLM server: real series names, an engine that really steps, and ways to break it.

Standard library only, Python 3.9 or newer. Start it with ``python3 tests/simulator/vllm_simulator.py``;
README.md beside that file lists the options and the control channel.
"""
