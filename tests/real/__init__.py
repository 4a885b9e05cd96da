"""Drives a real vLLM through known states and asks the module about each of them."""
