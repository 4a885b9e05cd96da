"""Crontabs and at."""

from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit import crontabs

SYSTEM = """\
# m h dom mon dow user  command
SHELL=/bin/sh
PATH=/usr/bin:/bin

17 *\t* * *\troot    cd / && run-parts --report /etc/cron.hourly
*/15 * * * * ops sudo systemctl restart vllm % input
@daily root /usr/local/bin/nightly.sh
broken line
"""


def test_a_crontab_of_the_system():
    found = list(crontabs.entries(SYSTEM, with_user=True))
    assert [(entry.line, entry.user, entry.every) for entry in found] == [
        (5, "root", 3600),
        (6, "ops", 900),
        (7, "root", 86400),
    ]
    assert found[1].command == "sudo systemctl restart vllm "
    assert found[1].when == "*/15 * * * *"


def test_a_crontab_of_a_user():
    (found,) = crontabs.entries("MAILTO=x\n*/5 * * * * /home/ops/check.sh\n", with_user=False)
    assert (found.user, found.command, found.every) == (None, "/home/ops/check.sh", 300)


def test_files_that_cron_leaves_alone():
    assert crontabs.is_run("vllm", True) and crontabs.is_run("vllm.cron", False)
    for name in ("vllm~", ".vllm", "vllm.bak", "vllm.dpkg-old", "vllm.disabled"):
        assert not crontabs.is_run(name, False)
    assert not crontabs.is_run("vllm.cron", True)


def test_when_a_job_of_at_is_due():
    assert crontabs.at_time("a0000101c92b8c") == 0x01C92B8C * 60
    assert crontabs.at_time(".SEQ") is None
