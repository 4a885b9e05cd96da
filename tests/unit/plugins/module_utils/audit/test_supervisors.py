"""monit and supervisord, as their manuals write them."""

from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit import supervisors

MONIT = """\
set daemon 60
# check process old matching "vllm"
check process vllm matching "vllm serve"
  start program = "/usr/bin/systemctl start vllm" with timeout 600 seconds
  stop program  = "/usr/bin/systemctl stop vllm"
  if failed port 8000 protocol http request "/health" with timeout 10 seconds for 3 cycles then restart

check host api with address 127.0.0.1
  if failed port 8000 then alert
check program gpu with path /usr/local/bin/gpu-ok
  if status != 0 then exec "/usr/bin/systemctl restart vllm"
"""

SUPERVISOR = """\
[supervisord]
logfile=/var/log/supervisord.log

[program:llm]
command=/opt/vllm/bin/vllm serve org/model --port 8000 ; the server
environment=HF_TOKEN="geheim"

[program:watch]
command = /usr/local/bin/watch.sh
autorestart=false

[eventlistener:httpok]
command=httpok -p llm http://127.0.0.1:8000/health
events=TICK_60
"""


def test_checks_of_monit():
    found = supervisors.monit(MONIT)
    assert [(block.line, block.name, block.reacts) for block in found] == [
        (3, "vllm", True),
        (8, "api", False),
        (10, "gpu", True),
    ]
    assert found[0].commands == ((4, "/usr/bin/systemctl start vllm"), (5, "/usr/bin/systemctl stop vllm"))
    assert found[2].commands == ((11, "/usr/bin/systemctl restart vllm"),)


def test_sections_of_supervisord():
    found = supervisors.supervisord(SUPERVISOR)
    assert [(block.name, block.line, block.reacts, block.runs_vllm) for block in found] == [
        ("llm", 4, True, True),
        ("watch", 8, False, False),
        ("httpok", 12, True, False),
    ]
    assert found[1].commands == ((9, "/usr/local/bin/watch.sh"),)
    assert "geheim" not in repr(found)


def test_files_that_make_no_sense_say_nothing():
    assert supervisors.monit("\x00{{") == []
    assert supervisors.supervisord("no section\n[") == []
