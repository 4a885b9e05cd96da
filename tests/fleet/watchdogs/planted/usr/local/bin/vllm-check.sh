#!/bin/bash
TOKEN=geheim-0123456789
UNIT="vllm"
for try in 1 2; do
    curl -fsS -m 5 -H "Authorization: Bearer $TOKEN" http://127.0.0.1:9/v1/models && exit 0
done
systemctl try-restart \
    "${UNIT}.service"
