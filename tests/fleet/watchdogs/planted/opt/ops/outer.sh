#!/bin/sh
exec "$(dirname "$0")/inner.sh" vllm.service
