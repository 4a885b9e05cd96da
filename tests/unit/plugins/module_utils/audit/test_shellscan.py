"""Scripts are read for what restarts a unit; they are never run."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit.parties import Target
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit.shellscan import follow, lines, scan

VLLM = Target("vllm.service", containers=("llm",), ports=(8000,), through=(("llm.target", "PartOf"),))
USER = Target("vllm.service", uid=1000)


def actions(text, target=VLLM, **more):
    return [(hit.place.line, hit.action, hit.certain) for hit in scan(text, "/x/check.sh", target, **more).hits]


@pytest.mark.parametrize(
    "line, action",
    [
        ("systemctl restart vllm.service", "restart"),
        ("systemctl restart vllm", "restart"),
        ("/usr/bin/systemctl --no-block try-restart vllm", "restart"),
        ("sudo -n /bin/systemctl restart vllm.service >/dev/null 2>&1", "restart"),
        ("curl -fsS -m 5 http://127.0.0.1:8000/health || systemctl restart vllm", "restart"),
        ("if ! curl -s localhost:8000/health; then systemctl restart vllm; fi", "restart"),
        ("systemctl stop vllm && sleep 5 && true", "stop"),
        ("systemctl start nginx vllm.service", "start"),
        ("systemctl kill -s SIGKILL vllm", "kill"),
        ("systemctl --signal=9 kill vllm", "kill"),
        ("systemctl restart 'vllm*'", "restart"),
        ("systemctl restart llm.target", "restart"),
        ('bash -c "systemctl restart vllm"', "restart"),
        ("su -c 'cd /tmp; systemctl restart vllm' root", "restart"),
        ('echo "done: $(systemctl restart vllm)"', "restart"),
        ("echo systemctl restart vllm | at now + 1 minute", "restart"),
        ("echo 'systemctl restart vllm' | sudo bash", "restart"),
        ("subprocess.run(['systemctl', 'restart', 'vllm.service'], check=True)", "restart"),
        ('os.system("systemctl restart vllm")', "restart"),
        ("ExecStart=/bin/systemctl restart vllm.service", "restart"),
        ("ExecStart=-/bin/sh -c 'systemctl try-restart vllm'", "restart"),
        ("service vllm restart", "restart"),
        ("/usr/sbin/service vllm stop", "stop"),
        ("/etc/init.d/vllm restart", "restart"),
        ("invoke-rc.d vllm restart", "restart"),
        ("busctl call org.freedesktop.systemd1 /o/s o.f.s1.Manager RestartUnit ss vllm.service replace", "restart"),
        ("gdbus call -m org.freedesktop.systemd1.Manager.StopUnit 'vllm.service' replace", "stop"),
        ("docker restart llm", "restart"),
        ("podman container kill llm", "kill"),
        ("docker rm -f llm", "kill"),
        ("docker-compose -f /srv/llm.yml restart llm", "restart"),
        ("pkill -9 -f 'vllm serve'", "kill"),
        ("pkill -f vllm.entrypoints.openai.api_server", "kill"),
        ("killall -9 vllm", "kill"),
        ("fuser -k 8000/tcp", "kill"),
    ],
)
def test_these_surely_restart_it(line, action):
    assert actions(line) == [(1, action, True)]


@pytest.mark.parametrize(
    "line",
    [
        "kill -9 $(pgrep -f 'vllm serve')",
        "pgrep -f vllm | xargs kill -9",
        "kill $(systemctl show -p MainPID --value vllm.service)",
        "kill -TERM `cat /run/vllm.pid`",
        "lsof -t -i:8000 | xargs kill",
        "PID=$(pgrep -f vllm); kill -9 $PID",
        "pkill python3",
        "killall python3.11",
        "systemctl restart vllm@$i vllm$n",
    ],
)
def test_these_do_so_by_all_appearance(line):
    (found,) = actions(line)
    assert found[2] is False


@pytest.mark.parametrize(
    "line",
    [
        "# systemctl restart vllm",
        "true # systemctl restart vllm",
        "echo 'please run: systemctl restart vllm'",
        'logger -t watchdog "would systemctl restart vllm"',
        'print("systemctl restart vllm")',
        'true || echo "vLLM is down; run: systemctl restart vllm"',
        'logger.error("down, try: systemctl restart vllm")',
        'logger.info("systemctl restart vllm")',
        "systemctl status vllm",
        "systemctl is-active --quiet vllm",
        "systemctl restart nginx",
        "systemctl restart vllm-exporter.service",
        "systemctl restart my-vllm",
        "systemctl reset-failed vllm",
        "systemctl enable vllm",
        "systemctl daemon-reload",
        "systemctl --user restart vllm",
        "service vllm status",
        "service nginx restart",
        "docker restart other",
        "docker logs llm",
        "pgrep -f vllm",
        "pkill -0 -f vllm",
        "kill -0 $(cat /run/vllm.pid)",
        "kill -HUP $(cat /run/nginx.pid)",
        "pkill nginx",
        "fuser -k 9000/tcp",
        "fuser 8000/tcp",
        "grep 'systemctl restart vllm' /var/log/syslog",
        "systemctl restart $(cat /etc/thing)",
        "",
    ],
)
def test_these_do_not(line):
    assert actions(line) == []


def test_of_a_user_unit_only_the_users_manager_is_told():
    assert actions("systemctl --user restart vllm", USER) == [(1, "restart", True)]
    assert actions("systemctl restart vllm", USER) == []


def test_another_hosts_unit_is_told_apart():
    for line in ("ssh gpu-07 systemctl restart vllm", "systemctl -H root@gpu-07 restart vllm"):
        (hit,) = scan(line, "/x", VLLM).hits
        assert hit.remote


def test_a_unit_that_takes_it_along_is_named():
    (hit,) = scan("systemctl restart llm.target", "/x", VLLM).hits
    assert hit.unit == "llm.target"


SCRIPT = """\
#!/bin/bash
# vLLM watchdog. Never call systemctl restart vllm by hand.
UNIT="vllm"
URL=http://127.0.0.1:8000/health
TOKEN=geheim
for try in 1 2 3; do
  curl -H "Authorization: Bearer $TOKEN" -fsS "$URL" && exit 0
done
/usr/local/bin/notify "restarting $UNIT"
systemctl \\
  restart \\
  "${UNIT}.service"
"""


def test_a_whole_script():
    found = scan(SCRIPT, "/usr/local/bin/check.sh", VLLM)
    (hit,) = found.hits
    assert str(hit.place) == "/usr/local/bin/check.sh:10"
    assert hit.certain and hit.action == "restart"
    assert "geheim" not in repr(hit)
    assert ("/usr/local/bin/notify", ("restarting", "vllm")) in found.calls


@pytest.mark.parametrize(
    "text",
    [
        'UNIT=vllm.service\nsystemctl restart "$UNIT"\n',
        "for u in nginx vllm; do\n  systemctl restart $u\ndone\n",
        'UNITS=(nginx vllm)\nfor u in "${UNITS[@]}"; do systemctl restart "$u"; done\n',
        "A=vllm\nB=${A}.service\nsystemctl restart $B\n",
        "systemctl restart ${UNIT:-vllm}\n",
        'UNIT = "vllm.service"\nsubprocess.run(["systemctl", "restart", UNIT])\n',
        "UNITS = ['nginx', 'vllm']\nfor u in UNITS:\n  subprocess.call(['systemctl','restart', u])\n",
        'unit = "vllm"\nos.system(f"systemctl restart {unit}")\n',
    ],
)
def test_variables_of_the_script_are_put_in(text):
    found = scan(text, "/x", VLLM).hits
    assert [hit.action for hit in found] == ["restart"]


def test_arguments_and_the_environment_are_put_in():
    assert actions('systemctl restart "$1"', arguments=["vllm.service"]) == [(1, "restart", True)]
    assert actions('systemctl restart "$@"', arguments=["nginx", "vllm"]) == [(1, "restart", True)]
    assert actions("systemctl restart $UNIT", environment={"UNIT": "vllm"}) == [(1, "restart", True)]
    assert actions('systemctl restart "$1"', arguments=["nginx"]) == []


def test_a_variable_that_stays_unknown_counts_only_in_a_script_that_names_the_unit():
    assert actions("# for vllm\nsystemctl restart $X\n") == [(2, "restart", False)]
    assert actions("systemctl restart $X\n") == []


def test_units_that_a_command_lists_count_in_a_script_that_names_the_unit():
    text = "systemctl restart $(systemctl list-units --plain 'vllm*' | cut -d' ' -f1)\n"
    assert actions(text) == [(1, "restart", False)]


def test_lines_keep_their_numbers():
    assert list(lines("a \\\n b\n\n# no\nc # d\n'#e'\n")) == [(1, "a   b"), (5, "c "), (6, "'#e'")]


FILES = {
    "/usr/local/bin/outer.sh": "#!/bin/sh\n/opt/wd/inner.sh vllm || true\n",
    "/opt/wd/inner.sh": '#!/bin/sh\n. "$(dirname "$0")/lib.sh"\nbounce "$1"\n./deeper.sh\n',
    "/opt/wd/lib.sh": 'bounce() {\n  systemctl restart "$1"\n}\n# vllm\n',
    "/opt/wd/deeper.sh": "systemctl restart vllm\n",
}


def test_scripts_are_followed_one_level_and_no_further():
    found = follow("/usr/local/bin/outer.sh", "/etc/systemd/system/w.service", VLLM, FILES.get)
    assert found == []
    found = follow("/opt/wd/inner.sh vllm", "/etc/systemd/system/w.service", VLLM, FILES.get)
    assert [(str(hit.place), [str(way) for way in via]) for hit, via in found] == [
        ("/opt/wd/lib.sh:2", ["/opt/wd/inner.sh"]),
        ("/opt/wd/deeper.sh:1", ["/opt/wd/inner.sh"]),
    ]


def test_a_command_of_its_own_is_found_without_a_script():
    ((hit, via),) = follow("/bin/systemctl restart vllm", "/etc/cron.d/x", VLLM, FILES.get)
    assert (hit.action, via) == ("restart", ())


def test_scripts_that_call_each_other_end():
    files = {"/a.sh": "/b.sh\n/a.sh\n", "/b.sh": "/a.sh\n"}
    assert follow("/a.sh", "/x", VLLM, files.get, depth=50) == []


@pytest.mark.parametrize("text", ["\x00" * 1000, "$" * 5000, "`$(" * 2000, "{" * 5000, "'" * 4001, "=" * 3000, "a=$a\n" * 500])
def test_garbage_ends_too(text):
    assert scan(text, "/x", VLLM).hits == ()


@pytest.mark.parametrize(
    "text",
    [
        "A=$B$C${D:-x}\nB=$A\nC=$A$B\nsystemctl restart $A$B$C\n" * 200,
        "U=(a b c d e f g)\nfor u in ${U[@]}; do for v in $U; do systemctl restart $u$v$u$v; done; done\n" * 100,
        "for a in " * 400 + "\n" + "for a in " * 400,
    ],
)
def test_variables_made_of_each_other_do_not_grow_without_end(text):
    assert scan(text, "/x", VLLM).hits == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("subprocess.run(\n    [\n        'systemctl',\n        'restart',  # now\n        'vllm.service',\n    ],\n)\n", 2),
        ("run(['systemctl', 'restart',\n     'vllm'])\n", 1),
        ("UNITS = [\n    'nginx',\n    'vllm',\n]\nfor unit in UNITS:\n    subprocess.run(['systemctl', 'restart', unit])\n", 6),
        ("SERVICE: str = 'vllm'\nsubprocess.run(['systemctl', 'restart', SERVICE])\n", 2),
    ],
)
def test_python_as_it_is_formatted_today(text, line):
    assert [(number, action) for number, action, _certain in actions(text)] == [(line, "restart")]


def test_a_list_that_is_never_closed_hides_nothing_after_it():
    text = "x = [\n" + "1,\n" * 60 + "2\nsystemctl restart vllm\n"
    assert [action for _line, action, _certain in actions(text)] == ["restart"]


INSTANCE = Target("vllm@3.service", containers=("llm",))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("systemctl restart vllm@{1..4}", [(1, "restart", True)]),
        ("systemctl restart vllm@{4..9}.service", []),
        ("systemctl restart vllm@{1..9999}", [(1, "restart", True)]),
        ("docker ps -q --filter name=llm | xargs -r docker restart", [(1, "restart", False)]),
        ("docker ps -q --filter name=web | xargs -r docker restart", []),
        ("systemctl list-units -q 'vllm@3*' | awk '{print $1}' | xargs systemctl restart", [(1, "restart", False)]),
        ("systemctl list-units -q 'web*' | xargs systemctl restart", []),
        ("systemctl list-units -q 'vllm@3*' | xargs systemctl status", []),
    ],
)
def test_what_the_shell_or_a_pipe_makes_of_it(line, found):
    assert actions(line, INSTANCE) == found
