"""The model's files: a vocabulary of the 256 bytes, each told apart."""

from __future__ import annotations

import json

from tests.real import model


def test_every_byte_has_a_letter_of_its_own():
    letters = model.byte_letters()
    assert len(letters) == len(set(letters)) == 256
    assert letters[ord("A")] == "A"
    assert letters[ord(" ")] == "Ġ"  # as GPT-2 writes a blank


def test_the_marks_come_after_the_bytes():
    vocabulary = model.tokenizer()["model"]["vocab"]
    assert sorted(vocabulary.values()) == list(range(258))
    assert (vocabulary[model.BEGIN], vocabulary[model.END]) == (256, 257)


def test_a_folder_holds_all_that_a_server_reads(tmp_path):
    folder = model.write(tmp_path / "model", model.Size(layers=1, width=64, heads=2))
    assert json.loads((folder / "config.json").read_text())["hidden_size"] == 64
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "generation_config.json",
    }
