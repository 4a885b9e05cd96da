"""From processes and units to servers."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.discovery import (
    containers,
    finding,
    processes,
    results,
    units,
)
from ansible_collections.fleetcheck.vllm.plugins.module_utils.discovery.processes import Listener

VLLM = "/system.slice/vllm.service"
PYTHON = "/opt/vllm/bin/python3"


def process(pid, line, parent=1, cgroup=VLLM, uid=0):
    argv = line if line is None else tuple(line.split())
    return processes.Process(pid, parent, "x", argv, cgroup, uid)


def server(pid, arguments, **more):
    return process(pid, f"{PYTHON} /opt/vllm/bin/vllm serve {arguments}", **more)


def service(name="vllm.service", command="/opt/vllm/bin/vllm serve m", state="active", enabled="enabled", **more):
    return units.Service(
        name=name,
        active_state=state,
        unit_file_state=enabled,
        commands=(tuple(command.split()),),
        fragment=f"/etc/systemd/system/{name}",
        **more,
    )


def evidence(*listeners, **more):
    known = {"variables": frozenset(), "listeners": tuple(listeners), "own_network": False, "interpreter": PYTHON}
    known.update(more)
    return finding.Evidence(**known)


def judge(running=(), services=(), read=None, uid=0, **more):
    """What the module returns for these processes and units."""
    candidates = tuple(finding.candidates(running))
    host = finding.Host(uid=uid, candidates=candidates, evidence=read or {}, services=tuple(services), **more)
    return results.result(finding.find(host), host, [])


def test_one_server_in_one_unit():
    answer = judge(
        [server(10, "org/m --port 8001 --served-model-name one two")],
        [service()],
        {10: evidence(Listener("0.0.0.0", 8001, 1))},
    )
    assert answer["servers"] == [
        {
            "url": "http://127.0.0.1:8001",
            "name": "vllm.service",
            "unit": "vllm.service",
            "scope": "system",
            "kind": "backend",
        }
    ]
    (found,) = answer["found"]
    assert (found["pid"], found["port_from"], found["listening"]) == (10, "command line", True)
    assert (found["model"], found["served_model_names"]) == ("org/m", ["one", "two"])
    assert (found["interpreter"], found["api_key"], found["notes"]) == (PYTHON, False, [])
    assert answer["incomplete"] is False and answer["notes"] == []


def test_what_a_server_forks_is_the_same_server():
    running = [
        server(10, "m"),
        server(11, "m", parent=10),
        process(12, "VLLM::APIServer_0", parent=10),
        server(13, "m", parent=12),
    ]
    answer = judge(running, [service()], {10: evidence(Listener("0.0.0.0", 8000, 1))})
    assert len(answer["found"]) == 1
    assert finding.candidates(running)[0].tree == {10, 11, 12, 13}


def test_a_server_started_by_a_script_of_the_unit_is_in_the_unit():
    answer = judge(
        [process(9, "/bin/bash /opt/vllm/start.sh"), server(10, "m", parent=9)],
        [service(command="/opt/vllm/start.sh")],
        {10: evidence(Listener("0.0.0.0", 8000, 1))},
    )
    assert [entry["unit"] for entry in answer["servers"]] == ["vllm.service"]


def test_two_units_are_two_servers():
    answer = judge(
        [
            server(10, "a --port 8001", cgroup="/system.slice/a.service"),
            server(20, "b --port 8002", cgroup="/system.slice/b.service"),
        ],
        [service("a.service"), service("b.service")],
        {10: evidence(Listener("0.0.0.0", 8001, 1)), 20: evidence(Listener("0.0.0.0", 8002, 2))},
    )
    assert [(entry["unit"], entry["url"]) for entry in answer["servers"]] == [
        ("a.service", "http://127.0.0.1:8001"),
        ("b.service", "http://127.0.0.1:8002"),
    ]


def test_two_servers_in_one_unit_are_said_to_share_it():
    answer = judge(
        [server(10, "a --port 8001"), server(20, "b --port 8002")],
        [service(command="/opt/start.sh")],
        {10: evidence(Listener("0.0.0.0", 8001, 1)), 20: evidence(Listener("0.0.0.0", 8002, 2))},
    )
    assert len(answer["servers"]) == 2
    assert all("2 servers share vllm.service" in found["notes"][0] for found in answer["found"])


def test_a_server_without_a_unit_has_none_and_says_so():
    answer = judge(
        [server(10, "m", cgroup="/user.slice/user-0.slice/session-1.scope")],
        read={10: evidence(Listener("127.0.0.1", 8000, 1))},
    )
    assert answer["servers"] == [{"url": "http://127.0.0.1:8000", "name": "http://127.0.0.1:8000", "kind": "backend"}]
    assert answer["found"][0]["notes"] == ["no systemd unit runs it"]


def test_a_user_unit_of_the_user_who_asks():
    group = "/user.slice/user-1000.slice/user@1000.service/app.slice/vllm.service"
    answer = judge(
        [server(10, "m", cgroup=group, uid=1000)],
        [service(uid=1000)],
        {10: evidence(Listener("0.0.0.0", 8000, 1))},
        uid=1000,
    )
    assert (answer["servers"][0]["unit"], answer["servers"][0]["scope"]) == ("vllm.service", "user")


def test_a_user_unit_of_somebody_else_is_named_but_not_asked_for():
    group = "/user.slice/user-1000.slice/user@1000.service/app.slice/vllm.service"
    answer = judge(
        [server(10, "m", cgroup=group, uid=1000)],
        [service(uid=1000)],
        {10: evidence(Listener("0.0.0.0", 8000, 1))},
        user_names={1000: "alice"},
    )
    assert "unit" not in answer["servers"][0]
    assert (answer["found"][0]["unit"], answer["found"][0]["user"]) == ("vllm.service", "alice")
    assert "connect as alice" in answer["found"][0]["notes"][0]


def test_a_server_that_does_not_listen_yet():
    answer = judge([server(10, "m --port 8001")], [service()], {10: evidence()})
    assert answer["servers"][0]["url"] == "http://127.0.0.1:8001"
    assert answer["found"][0]["listening"] is False
    assert answer["found"][0]["notes"] == ["nothing listens on port 8001 yet"]


def test_without_rights_the_command_line_is_believed_and_the_doubt_said():
    answer = judge([server(10, "m --port 8001")], [service()], {10: finding.Evidence()}, uid=1000)
    (found,) = answer["found"]
    assert answer["incomplete"] is True
    assert (found["port"], found["listening"], found["api_key"]) == (8001, None, None)
    assert len(found["notes"]) == 2 and all("needs root" in note for note in found["notes"])


@pytest.mark.parametrize(
    "said, listeners, url",
    [
        ("--host 0.0.0.0", [Listener("0.0.0.0", 8000, 1)], "http://127.0.0.1:8000"),
        ("--host ::", [Listener("::", 8000, 1)], "http://[::1]:8000"),
        ("--host 10.0.0.5", [Listener("10.0.0.5", 8000, 1)], "http://10.0.0.5:8000"),
        ("--host fe::1", [Listener("fe::1", 8000, 1)], "http://[fe::1]:8000"),
        ("", [Listener("10.0.0.5", 8000, 1), Listener("127.0.0.1", 8000, 2)], "http://127.0.0.1:8000"),
        ("--ssl-certfile c.pem", [Listener("0.0.0.0", 8000, 1)], "https://127.0.0.1:8000"),
    ],
)
def test_the_url_leads_to_the_socket(said, listeners, url):
    answer = judge([server(10, f"m {said}")], [service()], {10: evidence(*listeners)})
    assert answer["servers"][0]["url"] == url


def test_with_tls_a_name_that_is_the_hosts_own_is_kept_for_the_certificate():
    answer = judge(
        [server(10, "m --host gpu-07.lan --ssl-certfile c.pem")],
        [service()],
        {10: evidence(Listener("10.0.0.5", 8000, 1), local_host="10.0.0.5")},
    )
    assert answer["servers"][0]["url"] == "https://gpu-07.lan:8000"


def test_no_request_is_led_away_from_the_host_by_a_command_line():
    for host in ("evil.example", "198.51.100.7", "x/@evil.example"):
        answer = judge([server(10, f"m --host {host}")], [service()], {10: evidence(local_host=None)})
        assert answer["servers"][0]["url"] == "http://127.0.0.1:8000"


def test_the_port_of_a_configuration_file():
    answer = judge(
        [server(10, "--config /etc/vllm.yaml")],
        [service()],
        {10: evidence(Listener("0.0.0.0", 6379, 1), configuration="model: org/m\nport: 6379\n")},
    )
    (found,) = answer["found"]
    assert (found["port"], found["port_from"], found["model"]) == (6379, "configuration file", "org/m")


def test_an_unreadable_configuration_file_leaves_the_only_open_socket():
    answer = judge(
        [server(10, "m --config /etc/vllm.yaml")],
        [service()],
        {10: evidence(Listener("0.0.0.0", 6379, 1), Listener("127.0.0.1", 40000, 2))},
    )
    (found,) = answer["found"]
    assert (found["port"], found["port_from"]) == (6379, "listening socket")
    assert found["notes"] == ["its configuration file (--config) could not be read"]


@pytest.mark.parametrize("said, why", [("--headless", "headless"), ("--grpc", "gRPC"), ("--uds /run/v.sock", "Unix socket")])
def test_a_server_without_http_is_found_but_not_checked(said, why):
    answer = judge([server(10, f"m {said}")], [service()], {10: evidence()})
    assert answer["servers"] == []
    assert answer["found"][0]["url"] is None and why in answer["found"][0]["notes"][0]


def test_each_rank_with_a_port_of_its_own_is_a_server():
    line = "m --port 8000 -dp 4 --data-parallel-size-local 2 --data-parallel-multi-port-external-lb"
    answer = judge(
        [server(10, line)],
        [service()],
        {10: evidence(Listener("0.0.0.0", 8000, 1), Listener("0.0.0.0", 8001, 2), Listener("0.0.0.0", 9256, 3))},
    )
    assert [(entry["name"], entry["url"]) for entry in answer["servers"]] == [
        ("vllm.service:8000", "http://127.0.0.1:8000"),
        ("vllm.service:8001", "http://127.0.0.1:8001"),
    ]


def test_a_key_in_the_environment_is_noticed():
    read = {10: evidence(Listener("0.0.0.0", 8000, 1), variables=frozenset({"VLLM_API_KEY"}))}
    assert judge([server(10, "m")], [service()], read)["found"][0]["api_key"] is True
    read = {10: finding.Evidence()}
    with_key = service(environment=(("VLLM_API_KEY", "geheim"),))
    answer = judge([server(10, "m")], [with_key], read)
    assert answer["found"][0]["api_key"] is True
    assert "geheim" not in repr(answer)


class TestStopped:
    """A server that died must not vanish."""

    @pytest.mark.parametrize("state, enabled", [("failed", "disabled"), ("inactive", "enabled"), ("activating", "static")])
    def test_it_is_checked_if_systemd_means_it_to_run(self, state, enabled):
        answer = judge(services=[service(command="/opt/vllm/bin/vllm serve m --port 8001", state=state, enabled=enabled)])
        assert answer["servers"][0]["url"] == "http://127.0.0.1:8001"

    def test_it_is_only_mentioned_if_nobody_means_it_to_run(self):
        answer = judge(services=[service(state="inactive", enabled="disabled")])
        assert answer["servers"] == []
        assert answer["found"][0]["notes"] == ["it is not running, and not enabled: left alone"]

    def test_it_does_not_take_the_port_of_one_that_runs(self):
        answer = judge(
            [server(10, "m", cgroup="/system.slice/new.service")],
            [service("new.service"), service("old.service", state="inactive")],
            {10: evidence(Listener("0.0.0.0", 8000, 1))},
        )
        assert [entry["unit"] for entry in answer["servers"]] == ["new.service"]
        assert answer["found"][1]["notes"][-1] == "another server that runs has its port"

    def test_variables_come_from_the_unit_and_its_files(self):
        stopped = service(
            command="/opt/vllm/bin/vllm serve $MODEL --port ${PORT}",
            state="failed",
            environment=(("MODEL", "org/m"),),
            environment_files=("/etc/default/vllm",),
        )
        answer = judge(services=[stopped], environment_files={"/etc/default/vllm": "PORT=8009\nVLLM_API_KEY=geheim\n"})
        assert answer["servers"][0]["url"] == "http://127.0.0.1:8009"
        assert answer["found"][0]["api_key"] is True and "geheim" not in repr(answer)

    def test_a_port_that_cannot_be_known_is_said_to_be_so(self):
        answer = judge(services=[service(command="vllm serve m --port ${PORT}", state="failed")])
        assert answer["servers"] == []
        assert "its port is not a number where it is written" in answer["found"][0]["notes"]

    def test_its_start_script_is_read(self):
        answer = judge(
            services=[service(command="/opt/vllm/start.sh", state="failed")],
            scripts={"/opt/vllm/start.sh": "#!/bin/sh\nexec vllm serve m --port 8007\n"},
        )
        assert answer["servers"][0]["url"] == "http://127.0.0.1:8007"


def test_a_unit_that_runs_while_its_process_cannot_be_looked_at():
    blocked = processes.Process(10, 1, "vllm", None, VLLM)
    answer = judge([blocked], [service(command="vllm serve m --port 8003")])
    assert answer["servers"][0]["url"] == "http://127.0.0.1:8003"
    assert "told by its unit alone" in answer["found"][0]["notes"][0]


@pytest.mark.parametrize("port", ["$$PORT", "$${PORT}", "${PORT:-8005}"])
def test_a_variable_that_a_shell_fills_in(port):
    command = f"/bin/sh -c exec vllm serve m --port {port}"
    answer = judge(services=[service(command=command, state="failed", environment=(() if "-" in port else (("PORT", "8005"),)))])
    assert answer["servers"][0]["url"] == "http://127.0.0.1:8005"


class TestContainers:
    """As far as the unit shows it."""

    QUADLET = "/usr/bin/podman run --name=systemd-vllm --cgroups=split -d -p 8080:8000 docker.io/vllm/vllm-openai m"
    DOCKER = "/usr/bin/docker run --rm --name vllm -p 127.0.0.1:9000:8000 vllm/vllm-openai:latest m"
    IDENT = "d" * 64

    def test_a_quadlet_whose_process_is_in_the_units_group(self):
        inside = server(10, "m", cgroup=f"{VLLM}/libpod-payload-{self.IDENT}")
        answer = judge(
            [inside],
            [service(command=self.QUADLET, source="/etc/containers/systemd/vllm.container")],
            {10: evidence(Listener("0.0.0.0", 8000, 1), own_network=True)},
        )
        assert answer["servers"][0]["url"] == "http://127.0.0.1:8080"
        (found,) = answer["found"]
        assert found["port_from"] == "published port of podman run"
        assert found["container"]["image"] == "docker.io/vllm/vllm-openai"
        assert found["unit_file"] == "/etc/containers/systemd/vllm.container"

    def test_the_network_of_the_host_needs_no_published_port(self):
        command = "/usr/bin/podman run --network=host docker.io/vllm/vllm-openai m --port 8004"
        inside = server(10, "m --port 8004", cgroup=f"{VLLM}/libpod-payload-{self.IDENT}")
        answer = judge([inside], [service(command=command)], {10: evidence(Listener("0.0.0.0", 8004, 1))})
        assert answer["servers"][0]["url"] == "http://127.0.0.1:8004"
        assert answer["found"][0]["listening"] is True

    def test_docker_whose_process_is_elsewhere_is_told_by_the_unit(self):
        answer = judge(services=[service(command=self.DOCKER)])
        assert answer["servers"][0]["url"] == "http://127.0.0.1:9000"

    def test_the_process_of_a_docker_unit_is_not_a_second_server(self):
        inside = server(10, "m", cgroup=f"/system.slice/docker-{self.IDENT}.scope")
        listed = containers.Listed(self.IDENT, "vllm", "vllm/vllm-openai", ())
        answer = judge([inside], [service(command=self.DOCKER)], {10: evidence(own_network=True)}, listed=(listed,))
        assert len(answer["found"]) == 1 and answer["found"][0]["pid"] == 10

    @pytest.mark.parametrize(
        ("start", "names"),
        [
            ("/usr/bin/docker run --rm -p 9000:8000", ["strange_name"]),
            ("/usr/bin/docker run --rm -p 9000:8000", []),
            ("/usr/bin/podman run --rm --name vllm -p 9000:8000", []),
        ],
        ids=["docker without a name", "docker that may not be asked", "podman"],
    )
    def test_a_container_that_cannot_be_named_is_known_by_what_vllm_was_told(self, start, names):
        inside = server(10, "m --seed 7", cgroup=f"/machine.slice/libpod-{self.IDENT}.scope")
        ports = (containers.Published(8000, 9000, "0.0.0.0"), containers.Published(8000, 9000, "::"))
        listed = tuple(containers.Listed(self.IDENT, name, "vllm/vllm-openai", ports) for name in names)
        unit = service(command=f"{start} vllm/vllm-openai m --seed 7")
        other = service("b.service", f"{start.replace('vllm', 'b').replace('9000', '9001')} vllm/vllm-openai n")
        answer = judge([inside], [other, unit], {10: evidence(own_network=True)}, listed=listed)
        assert [(found["unit"], found["pid"]) for found in answer["found"]] == [("b.service", None), ("vllm.service", 10)]

    def test_a_container_that_was_started_by_hand_is_none_of_the_units(self):
        unit = service(command="/usr/bin/docker run -p 9000:8000 vllm/vllm-openai m")
        other = containers.Listed("e" * 64, "strange_name", "x", (containers.Published(8000, 9001, "0.0.0.0"),))
        alone = server(11, "m", cgroup=f"/system.slice/docker-{'e' * 64}.scope")
        answer = judge([alone], [unit], {11: evidence(own_network=True)}, listed=(other,))
        assert [(found["unit"], found["url"]) for found in answer["found"]] == [
            ("vllm.service", "http://127.0.0.1:9000"),
            (None, "http://127.0.0.1:9001"),
        ]
        mine = server(10, "m", cgroup=f"/system.slice/docker-{self.IDENT}.scope")
        answer = judge([mine, alone], [unit], {10: evidence(own_network=True), 11: evidence(own_network=True)})
        assert ("vllm.service", None) in [(found["unit"], found["pid"]) for found in answer["found"]]

    def test_where_two_units_tell_vllm_the_same_neither_gets_the_process(self):
        inside = server(10, "m", cgroup=f"/machine.slice/libpod-{self.IDENT}.scope")
        both = [service(f"{name}.service", f"/usr/bin/docker run -p 900{name}:8000 vllm/vllm-openai m") for name in "12"]
        answer = judge([inside], both, {10: evidence(own_network=True)})
        assert [(found["unit"], found["pid"]) for found in answer["found"]] == [
            ("1.service", None),
            ("2.service", None),
            (None, 10),
        ]

    def test_a_container_without_a_unit_is_reached_by_its_published_port(self):
        inside = server(10, "m", cgroup=f"/system.slice/docker-{self.IDENT}.scope")
        listed = containers.Listed(self.IDENT, "llm", "x", (containers.Published(8000, 7000, "0.0.0.0"),))
        answer = judge([inside], read={10: evidence(own_network=True)}, listed=(listed,))
        assert answer["servers"] == [{"url": "http://127.0.0.1:7000", "name": "http://127.0.0.1:7000", "kind": "backend"}]

    def test_a_port_that_is_not_published_is_said_to_be_unknown(self):
        inside = server(10, "m", cgroup=f"/system.slice/docker-{self.IDENT}.scope")
        answer = judge([inside], read={10: evidence(own_network=True)})
        assert answer["servers"] == []
        assert "not published" in answer["found"][0]["notes"][-2]


def test_nothing_is_said_plainly():
    answer = judge([process(1, "/sbin/init")], [service("ssh.service", command="/usr/sbin/sshd -D")])
    assert answer == {
        "servers": [],
        "found": [],
        "incomplete": False,
        "notes": ["no vLLM server was found on this host"],
    }


def test_hostile_words_stay_one_line_of_text():
    hostile = processes.Process(
        10, 1, "x", (PYTHON, "/x/vllm", "serve", "m\x1b[2J\n{{ evil }}", "--root-path", "\x00/x"), VLLM, 0
    )
    answer = judge([hostile], [service()], {10: evidence(Listener("0.0.0.0", 8000, 1))})
    assert "\x1b" not in repr(answer) and "\n" not in answer["found"][0]["model"]


@pytest.mark.parametrize(
    "unit", ["supervisor", "pm2-root", "slurmd", "jupyterhub", "cron", "ssh", "actions.runner.org-repo.gpu-01", "sshd@3"]
)
def test_a_unit_that_only_holds_the_process_is_not_the_one_to_restart(unit):
    name = f"{unit}.service"
    running = server(10, "m", cgroup=f"/system.slice/{name}")
    answer = judge([running], [service(name, "/usr/bin/something")], {10: evidence(Listener("0.0.0.0", 8000, 1))})
    (entry,) = answer["servers"]
    assert "unit" not in entry and entry["url"] == "http://127.0.0.1:8000"
    assert any(f"it runs inside {name}" in note for note in answer["found"][0]["notes"])


@pytest.mark.parametrize("state", ["activating", "failed", "deactivating"])
@pytest.mark.parametrize("command", ["/opt/start.sh", "/bin/bash -e /opt/start.sh", "/bin/bash /opt/start.sh"])
def test_a_start_script_counts_while_its_unit_has_no_process(state, command):
    text = "#!/bin/sh\nexec vllm serve m --port 8004\n"
    answer = judge([], [service(command=command, state=state)], scripts={"/opt/start.sh": text})
    assert [entry["url"] for entry in answer["servers"]] == ["http://127.0.0.1:8004"]
