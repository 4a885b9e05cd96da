# make help      what there is
# make demo      a fleet of simulated servers, checked
# make test      everything; sets up what it needs

# Hundreds of processes start from the same files: Python may keep them compiled, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

CORES := 2.15 2.16 2.18 2.19
CORE_ENVS := $(CORES:%=.venvs/core-%/.ready)
# What AWX and Event-Driven Ansible bring along, each apart from what the tests run in.
TOOL_ENVS := .venvs/awx/.ready .venvs/eda/.ready
PY := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help demo test unit integration molecule sanity lint lint-ruff lint-mypy lint-ansible bench real envs clean

help:  ## Show this
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.ready  ## Check a fleet of simulated servers (no root, no GPU)
	$(PY) tests/simulator/demo.py

test: .venv/.ready  ## Run everything, and say at the end what did not run
	$(PY) tests/tools/run_all.py

unit: .venv/.ready  ## Unit tests
	$(PY) tests/tools/run_all.py unit

integration: envs  ## The module, the role and the playbooks through real Ansible, on every supported ansible-core
	$(PY) tests/tools/run_all.py integration

sanity: .venv/.ready  ## ansible-test sanity, on the built collection
	$(PY) tests/tools/sanity.py

lint: lint-ruff lint-mypy lint-ansible  ## ruff, mypy, ansible-lint

lint-ruff: .venv/.ready
	.venv/bin/ruff check .

lint-mypy: .venv/.ready
	.venv/bin/mypy

lint-ansible: .venv/.ready
	PATH="$(CURDIR)/.venv/bin:$$PATH" NO_COLOR=1 ANSIBLE_COLLECTIONS_PATH=playbooks/collections .venv/bin/ansible-lint

molecule: .venv/.ready  ## Heal a fleet of real systemd hosts (needs root)
	PATH="$(CURDIR)/.venv/bin:$$PATH" FLEET_OWNER=$$$$ NO_COLOR=1 .venv/bin/molecule test

bench: .venv/.ready  ## How long a check takes, and how many requests it makes
	$(PY) tests/benchmarks/check_one_run.py
	$(PY) tests/benchmarks/cost.py
	$(PY) tests/benchmarks/host_mode.py
	$(PY) tests/benchmarks/controller_mode.py

real: .venv/.ready  ## Drive a real vLLM (CPU build, some 3 GB) through known states and compare
	$(PY) tests/real/run.py

envs:  ## The development environment and one for each supported ansible-core
	@$(MAKE) --no-print-directory -j2 .venv/.ready $(CORE_ENVS) $(TOOL_ENVS)

clean:  ## Remove what the targets above have made
	rm -rf .venv .venvs .cache .ansible .pytest_cache .mypy_cache .ruff_cache .hypothesis fleetcheck-vllm-*.tar.gz
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.ready: requirements-dev.txt tests/tools/make_venv.sh
	@tests/tools/make_venv.sh .venv -r requirements-dev.txt
	@touch $@

.venvs/core-%/.ready: requirements.txt tests/tools/make_venv.sh | .venv/.ready
	@tests/tools/make_venv.sh .venvs/core-$* "ansible-core~=$*.0" -r requirements.txt
	@touch $@

.venvs/%/.ready: tests/integration/%/requirements.txt tests/tools/make_venv.sh | .venv/.ready
	@tests/tools/make_venv.sh .venvs/$* -r $<
	@touch $@
