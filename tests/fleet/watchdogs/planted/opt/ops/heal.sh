#!/bin/sh
kill -9 $(pgrep -f "vllm serve")
