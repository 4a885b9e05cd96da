"""What the modules that find things return is what their documentation says."""

from __future__ import annotations

import yaml
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit import findings, journal, unitfacts
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit.examination import Asked, Examination
from ansible_collections.fleetcheck.vllm.plugins.module_utils.audit.parties import Party
from ansible_collections.fleetcheck.vllm.plugins.module_utils.discovery import finding, processes, results
from ansible_collections.fleetcheck.vllm.plugins.modules import vllm_health_info, vllm_servers_info, vllm_watchdogs_info

SERVERS = yaml.safe_load(vllm_servers_info.RETURN)
WATCHDOGS = yaml.safe_load(vllm_watchdogs_info.RETURN)


def discovered():
    process = processes.Process(7, 1, "vllm", ("vllm", "serve", "m"), "/system.slice/vllm.service", 0)
    host = finding.Host(uid=0, candidates=tuple(finding.candidates([process])))
    return results.result(finding.find(host), host, [])


def test_every_returned_key_of_the_discovery_is_documented():
    answer = discovered()
    assert set(answer) == set(SERVERS)
    assert set(answer["found"][0]) == set(SERVERS["found"]["contains"])
    assert set(answer["servers"][0]) <= set(SERVERS["servers"]["contains"])


def test_the_found_servers_are_what_the_check_takes():
    options = yaml.safe_load(vllm_health_info.DOCUMENTATION)["options"]["servers"]["suboptions"]
    assert set(SERVERS["servers"]["contains"]) <= set(options)


def test_every_returned_key_of_the_audit_is_documented(monkeypatch):
    monkeypatch.setattr(Examination, "_read_manager", lambda self, uid: None)
    unit = Examination(1, 600).unit(Asked("no-such-unit.service"))
    documented = WATCHDOGS["units"]["contains"]
    assert set(unit) == set(documented)
    assert set(findings.party_data(Party("cron", "x", "restart"))) == set(documented["parties"]["contains"])
    restart = findings.restart_data(journal.Restart(1, 1, None, "", False), journal.Asker(), 600)
    assert set(restart) == set(documented["restarts"]["contains"])
    assert set(unitfacts.own_settings({})) == set(documented["own"]["sample"])
