"""The OpenAI side: bodies of requests turned into engine requests, and bodies of answers."""

from __future__ import annotations

import json
import time
from typing import Any

from .counts import POOLING_PATHS
from .exchange import BadRequestError
from .releases import Release
from .requests import Request

CHAT = "/v1/chat/completions"
CHAT_TOKENS = 200  # of an answer without a limit
COMPLETION_TOKENS = 16  # OpenAI's default
CHARACTERS_PER_TOKEN = 4


def error(release: Release, status: int, kind: str, message: str, param: str | None = None) -> dict:
    """An error body as vLLM writes it."""
    if release.nested_errors:
        return {"error": {"message": message, "type": kind, "param": param, "code": status}}
    return {"object": "error", "message": message, "type": kind, "param": param, "code": status}


def count_tokens(prompt: Any) -> int:
    """Tokens of a prompt: given as token numbers, as text, or as a list of texts or messages."""
    if isinstance(prompt, str):
        return max(1, len(prompt) // CHARACTERS_PER_TOKEN)
    if isinstance(prompt, list) and prompt and all(isinstance(part, int) for part in prompt):
        return len(prompt)
    if isinstance(prompt, list):
        return max(1, sum(count_tokens(part) for part in prompt))
    if isinstance(prompt, dict):
        return count_tokens(prompt.get("content") or "")
    raise BadRequestError("prompt must be text, token numbers, or a list of either")


def request_from(path: str, body: dict) -> Request:
    """The engine's view of a body.

    Beyond OpenAI's fields, `sim` may hold `prompt_tokens`, `chunk_tokens` (of one step) and `chunk_seconds`
    (how long such a step takes), to play a long prompt.
    """
    pooling = path in POOLING_PATHS
    special = body.get("sim") or {}
    prompt = body.get("messages" if path == CHAT else "input" if pooling else "prompt")
    limit = body.get("max_tokens", body.get("max_completion_tokens"))
    default = CHAT_TOKENS if path == CHAT else COMPLETION_TOKENS
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise BadRequestError(f"max_tokens must be at least 1, got {limit}.")
    return Request(
        prompt_tokens=special.get("prompt_tokens") or count_tokens(prompt if prompt is not None else ""),
        max_tokens=1 if pooling else limit or default,
        stream=bool(body.get("stream")) and not pooling,
        pooling=pooling,
        ends_with="length" if limit else "stop",
        chunk_tokens=special.get("chunk_tokens"),
        chunk_seconds=special.get("chunk_seconds") or 0.0,
    )


def answer(path: str, model: str, request: Request, reason: str) -> dict:
    """The body of a finished request."""
    usage = {"prompt_tokens": request.prompt_tokens, "completion_tokens": request.generated,
             "total_tokens": request.prompt_tokens + request.generated}
    head = {"id": f"cmpl-{request.number:016x}", "created": int(time.time()), "model": model, "usage": usage}
    if request.pooling:
        data = {"index": 0, "object": "embedding", "embedding": [0.5, -0.5, 0.25, 0.0]}
        return {**head, "object": "list", "data": [data]}
    text = "x " * request.generated
    if path == CHAT:
        choice: dict = {"message": {"role": "assistant", "content": text}}
        return {**head, "object": "chat.completion", "choices": [_choice(choice, reason)]}
    return {**head, "object": "text_completion", "choices": [_choice({"text": text, "logprobs": None}, reason)]}


def event(path: str, model: str, request: Request, tokens: int, reason: str | None = None) -> str:
    """One server-sent event with some tokens, or with the end."""
    head = {"id": f"cmpl-{request.number:016x}", "created": int(time.time()), "model": model}
    text = "x " * tokens
    if path == CHAT:
        choice: dict = {"delta": {"content": text} if tokens else {}}
        return json.dumps({**head, "object": "chat.completion.chunk", "choices": [_choice(choice, reason)]})
    return json.dumps({**head, "object": "text_completion", "choices": [_choice({"text": text}, reason)]})


def _choice(content: dict, reason: str | None) -> dict:
    return {"index": 0, **content, "finish_reason": reason, "stop_reason": None}


def models(names: tuple, loras: tuple, max_model_len: int, started_at: float) -> dict:
    """The body of GET /v1/models: every served name, then the LoRA adapters with their parent."""
    cards = [_card(name, names[0], None, max_model_len, started_at) for name in names]
    cards += [_card(name, f"/adapters/{name}", names[0], None, started_at) for name in loras]
    return {"object": "list", "data": cards}


def _card(name: str, root: str, parent: str | None, max_model_len: int | None, created: float) -> dict:
    permission = {"id": "modelperm-0", "object": "model_permission", "created": int(created),
                  "allow_create_engine": False, "allow_sampling": True, "allow_logprobs": True,
                  "allow_search_indices": False, "allow_view": True, "allow_fine_tuning": False,
                  "organization": "*", "group": None, "is_blocking": False}
    return {"id": name, "object": "model", "created": int(created), "owned_by": "vllm", "root": root,
            "parent": parent, "max_model_len": max_model_len, "permission": [permission]}
