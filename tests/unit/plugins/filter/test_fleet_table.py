"""The table of a fleet, as a person reads it."""

from ansible_collections.fleetcheck.vllm.plugins.filter.fleet_table import fleet_table


def row(**changes):
    return {
        "host": "gpu-07",
        "name": "vllm.service",
        "verdict": "busy",
        "reason": "progress",
        "healthy": True,
        "message": "2 running, 0 waiting, 107 tokens in 0.5 s (214 tokens/s); no request was sent",
        "engines": [{"running": 2.0, "waiting": 0.0, "tokens_per_second": 214.4}],
        **changes,
    }


def table(*rows, counts=None, hosts=None):
    return fleet_table({
        "servers": list(rows),
        "counts": {"busy": len(rows)} if counts is None else counts,
        "hosts": hosts or {"checked": 1, "unreachable": 0, "failed": 0},
    })


def test_it_reads_like_this():
    lines = table(
        row(host="a", name="chat", verdict="stuck", reason="no_progress", message="nothing moved"),
        row(),
        row(host="b", name="-", verdict="unknown", reason="unreachable", engines=[], message="no route to host"),
        counts={"stuck": 1, "unknown": 1, "busy": 1},
        hosts={"checked": 2, "unreachable": 1, "failed": 0},
    )
    assert lines == [
        "HOST    SERVER        VERDICT  REASON       RUN/WAIT  TOK/S  MESSAGE",
        "a       chat          stuck    no_progress  2/0       214    nothing moved",
        "gpu-07  vllm.service  busy     progress     2/0       214    "
        "2 running, 0 waiting, 107 tokens in 0.5 s (214 tokens/s); no request was sent",
        "b       -             unknown  unreachable  -         -      no route to host",
        "",
        "1 stuck, 1 unknown, 1 busy; 2 of 3 hosts checked; 1 unreachable",
    ]


def test_engines_are_added_up_and_what_is_not_known_left_out():
    engines = [
        {"running": 2.0, "waiting": 3.0, "tokens_per_second": None},
        {"running": 1.0, "waiting": None, "tokens_per_second": None},
    ]
    line = table(row(engines=engines))[1]
    assert "3/3" in line
    assert line.split("3/3")[1].split()[0] == "-"


def test_a_long_message_keeps_its_beginning_where_the_numbers_are():
    line = table(row(message="2 running, 40 waiting, " + "x" * 400))[1]
    assert "2 running, 40 waiting" in line
    assert line.endswith("...")
    assert len(line) < 260


def test_a_line_cannot_be_faked_nor_a_terminal_be_told_what_to_do():
    hostile = "ok\n\x1b[2J\x1b]0;x\x07gpu-99  all well\u2028\u202e\u200b"
    lines = table(row(name=hostile, message=hostile, host=hostile))
    assert len(lines) == 4
    assert all(character.isprintable() for line in lines for character in line)
    assert "?[2J" in lines[1]


def test_columns_stay_aligned_beside_wide_letters():
    wide, narrow = table(row(name="模型"), row(name="model"))[1:3]
    assert wide.index("busy") == narrow.index("busy") - 2


def test_a_fleet_without_servers_says_so():
    assert table(counts={}, hosts={"checked": 1, "unreachable": 0, "failed": 0})[-1].startswith("no server")
