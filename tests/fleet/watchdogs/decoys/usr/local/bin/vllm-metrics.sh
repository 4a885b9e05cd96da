#!/bin/sh
# Only looks. If it hangs, an operator may: systemctl restart vllm.service
systemctl is-active --quiet vllm.service || echo "vLLM is down; run: systemctl restart vllm.service"
pgrep -f "vllm serve" >/dev/null
logger -t metrics "not doing: systemctl restart vllm"
systemctl restart vllm-exporter.service || true
