#!/bin/sh
while sleep 1; do
    [ -e /run/vllm-hangs ] || continue
    rm /run/vllm-hangs
    echo "vLLM hangs, killing it"
    pkill -9 -f "vllm serve"
done
