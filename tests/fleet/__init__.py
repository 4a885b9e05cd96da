"""Real systemd hosts for tests: containers with their own init, journal, address and SSH server.

Each host is a systemd-nspawn container in a network namespace of its own. All hosts share one root file system, which
is built once and never written to: what a host writes goes into memory and is gone with it. Needs root.

On the command line: ``python -m tests.fleet up --hosts 3 --state DIR``; in Python: `tests.fleet.fleet.fleet`.
"""
