"""A tiny Llama with random weights and a byte tokenizer, written to a folder.

Nothing is downloaded: vLLM fills the weights itself (`--load-format dummy`), and
the tokenizer knows the 256 bytes and two marks, so every text is as many tokens
as it has bytes. That makes the length of a prefill exact.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

BEGIN, END = "<s>", "</s>"
BYTES = 256
CONTEXT = 49152


@dataclass(frozen=True)
class Size:
    """How much work one token is.

    The default is small enough to start in half a minute, and large enough that a prompt
    of some ten thousand tokens keeps two CPU cores busy for tens of seconds.
    """

    layers: int = 8
    width: int = 512
    heads: int = 8


def write(folder: Path, size: Size = Size()) -> Path:
    """Writes config, tokenizer and generation settings, and returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (
        ("config.json", config(size)),
        ("tokenizer.json", tokenizer()),
        ("tokenizer_config.json", tokenizer_config()),
        ("generation_config.json", {"bos_token_id": BYTES, "eos_token_id": BYTES + 1}),
    ):
        (folder / name).write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
    return folder


def config(size: Size) -> dict[str, object]:
    """The model's config.json."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": size.width,
        "intermediate_size": size.width * 3,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.heads,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "vocab_size": BYTES + 2,
        "bos_token_id": BYTES,
        "eos_token_id": BYTES + 1,
        "torch_dtype": "bfloat16",
    }


def tokenizer() -> dict[str, object]:
    """A tokenizer.json whose tokens are the 256 bytes: byte-level BPE without a single merge."""
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    marks = [
        {
            "id": BYTES + offset,
            "content": mark,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for offset, mark in enumerate((BEGIN, END))
    ]
    vocabulary = {letter: byte for byte, letter in enumerate(byte_letters())}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": marks,
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": vocabulary | {BEGIN: BYTES, END: BYTES + 1},
            "merges": [],
        },
    }


def byte_letters() -> list[str]:
    """The printable letter that byte-level BPE writes for each byte, as GPT-2 laid it down.

    Printable bytes stand for themselves; the others get the code points from 256 on, in order.
    """
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(BYTES, 2 * BYTES))
    return [chr(byte if byte in printable else next(spare)) for byte in range(BYTES)]


def tokenizer_config() -> dict[str, object]:
    """Settings beside the tokenizer; the chat template only strings the texts together."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN,
        "eos_token": END,
        "model_max_length": CONTEXT,
        "chat_template": "{% for message in messages %}{{ message['content'] }}{% endfor %}",
    }
