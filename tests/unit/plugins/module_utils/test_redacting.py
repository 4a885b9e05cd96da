"""What is shown of a host's text holds no secret and cannot move a terminal's cursor."""

import pytest
from ansible_collections.fleetcheck.vllm.plugins.module_utils.redacting import shown


@pytest.mark.parametrize(
    "line",
    [
        'curl -H "Authorization: Bearer geheim" http://127.0.0.1:8000/v1/models',
        "vllm serve org/model --api-key geheim --port 8000",
        "vllm serve org/model --api-key=geheim",
        "vllm serve org/model --api-key geheim geheim2 geheim3 --port 8000",
        "argv[]=/usr/bin/vllm serve org/model --api-key one geheim ; ignore_errors=no ; pid=4711",
        "VLLM_API_KEY=geheim vllm serve org/model",
        "export SLACK_TOKEN='geheim wort' && systemctl restart vllm",
        "wget https://monitor:geheim@example.org/hook",
        "curl -u monitor:geheim https://example.org/hook",
        '"api_key": "geheim"',
        "notify sk-geheim0123456789",
        "PASSWORD: geheim",
        "HF_TOKEN=geheim",
        "non-default args: {'api_key': ['geheim', 'geheim2'], 'port': 8001}",
        "Namespace(api_key=['geheim-1', 'geheim-2'], port=8001)",
        "vllm serve m --api-key a&geheim;x1",
        "VLLM_API_KEY=ab&geheim vllm serve m",
        "curl --user bob:geheim http://x",
        "curl -sfubob:geheim http://x",
        "sshpass -p geheim ssh gpu-01",
        "OPENAI_KEY=geheim",
        "LITELLM_MASTER_KEY=geheim",
        "git clone https://geheim@example.org/x",
        "curl https://hooks.slack.com/services/T0/B0/geheim",
        "Authorization: one geheim",
        "MYSQL_PWD=geheim mysql",
        "mysqladmin -h db -pgeheim ping",
        "docker login -u bob -p geheim registry.example.org",
        "curl https://example.org/hook?key=geheim&x=1",
        'Environment="VLLM_API_KEY=ein geheim wort" "A=b"',
        'Environment="VLLM_API_KEY=ein\\"e geheim wort" "A=b"',
        'VLLM_API_KEY="ein\\" geheim" vllm serve m',
        "vllm serve m --api-key it's-geheim",
        "VLLM_API_KEY=it's-geheim vllm serve m",
    ],
)
def test_secrets_are_hidden(line):
    assert "geheim" not in shown(line)


@pytest.mark.parametrize(
    "line",
    ["systemctl restart vllm.service", "pkill -f 'vllm serve'", "curl -fsS http://127.0.0.1:8000/health", "docker run -p 8000:8000 vllm"],
)
def test_what_is_no_secret_stays(line):
    assert shown(line) == line


def test_escape_sequences_and_turned_text_become_spaces():
    assert shown("a\x1b[2Jb\nc\u202ed") == "a [2Jb c d"


def test_a_long_line_is_cut():
    assert len(shown("x" * 10_000)) == 300


@pytest.mark.parametrize("line", ["-token" * 5000, "-" * 30_000, "token-" * 5000, "a_key" * 6000, "--api-key" * 3000])
def test_a_line_made_to_take_long_is_cut_before_it_is_looked_at(line):
    assert len(shown(line, 4000)) <= 4000
