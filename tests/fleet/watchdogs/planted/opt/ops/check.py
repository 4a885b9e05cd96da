import subprocess

UNIT = "vllm.service"
subprocess.run(["systemctl", "restart", UNIT], check=True)
