"""What clients must be told to speak with a codec: variables, files, and how they are started."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

NO_KEY = "unused"
"""Clients insist on a key where the codec asks for none."""


@dataclass(frozen=True, slots=True)
class Door:
    """Where a codec answers, for which model, and the key to show.

    The URL has no path and no slash at its end.
    """

    url: str
    model: str
    key: str = NO_KEY

    @property
    def v1(self) -> str:
        return f"{self.url}/v1"


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientSettings:
    """All that a client needs.

    Args:
        environ: variables.
        files: texts by their paths below the home directory.
        use: a command or a line of code.
    """

    use: str
    environ: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def _openai(use: str) -> Callable[[Door], ClientSettings]:
    """Clients that read the variables of the OpenAI SDK."""

    def settings(door: Door) -> ClientSettings:
        environ = {"OPENAI_BASE_URL": door.v1, "OPENAI_API_KEY": door.key}
        return ClientSettings(use=_filled(use, door), environ=environ)

    return settings


def _anthropic(use: str) -> Callable[[Door], ClientSettings]:
    """Clients that read the variables of the Anthropic SDK."""

    def settings(door: Door) -> ClientSettings:
        environ = {"ANTHROPIC_BASE_URL": door.url, "ANTHROPIC_API_KEY": door.key}
        return ClientSettings(use=_filled(use, door), environ=environ)

    return settings


def _code(use: str) -> Callable[[Door], ClientSettings]:
    """Clients that are told all in code."""
    return lambda door: ClientSettings(use=_filled(use, door))


def _filled(use: str, door: Door) -> str:
    return use.replace("MODEL", door.model).replace("URL", door.url).replace("KEY", door.key)


def _quoted(text: str) -> str:
    """As a string in JSON, TOML and YAML."""
    return json.dumps(text)


def _claude_code(door: Door) -> ClientSettings:
    return ClientSettings(
        use="claude",
        environ={
            "ANTHROPIC_BASE_URL": door.url,
            "ANTHROPIC_API_KEY": door.key,
            "ANTHROPIC_MODEL": door.model,
            "ANTHROPIC_SMALL_FAST_MODEL": door.model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    )


def _codex(door: Door) -> ClientSettings:
    config = (
        f"model = {_quoted(door.model)}\n"
        'model_provider = "tokenway"\n\n'
        "[model_providers.tokenway]\n"
        'name = "Tokenway"\n'
        f"base_url = {_quoted(door.v1)}\n"
        'env_key = "TOKENWAY_KEY"\n'
        'wire_api = "responses"\n'
    )
    return ClientSettings(
        use="codex", environ={"TOKENWAY_KEY": door.key}, files={".codex/config.toml": config}
    )


def _opencode(door: Door) -> ClientSettings:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Tokenway",
        "options": {"baseURL": door.v1, "apiKey": door.key},
        "models": {door.model: {"name": door.model}},
    }
    config = {
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": False,
        "share": "disabled",
        "model": f"tokenway/{door.model}",
        "provider": {"tokenway": provider},
    }
    path = ".config/opencode/opencode.json"
    return ClientSettings(use="opencode", files={path: json.dumps(config, indent=2) + "\n"})


def _continue(door: Door) -> ClientSettings:
    config = (
        "name: tokenway\n"
        "version: 1.0.0\n"
        "schema: v1\n"
        "models:\n"
        f"  - name: {_quoted(door.model)}\n"
        "    provider: openai\n"
        f"    model: {_quoted(door.model)}\n"
        f"    apiBase: {_quoted(door.v1)}\n"
        f"    apiKey: {_quoted(door.key)}\n"
        "    roles: [chat, edit, apply]\n"
        "    capabilities: [tool_use]\n"
    )
    return ClientSettings(
        use="cn --config ~/.continue/config.yaml", files={".continue/config.yaml": config}
    )


def _qwen_code(door: Door) -> ClientSettings:
    environ = {"OPENAI_BASE_URL": door.v1, "OPENAI_API_KEY": door.key, "OPENAI_MODEL": door.model}
    # It would tell its makers how it is used.
    quiet = {"privacy": {"usageStatisticsEnabled": False}}
    files = {".qwen/settings.json": json.dumps(quiet, indent=2) + "\n"}
    return ClientSettings(use="qwen --auth-type openai", environ=environ, files=files)


def _aider(door: Door) -> ClientSettings:
    environ = {"OPENAI_API_BASE": door.v1, "OPENAI_API_KEY": door.key}
    return ClientSettings(use=f"aider --model openai/{door.model}", environ=environ)


CLIENTS: Mapping[str, Callable[[Door], ClientSettings]] = {
    "aider": _aider,
    "anthropic-javascript": _anthropic("const client = new Anthropic(); // model: 'MODEL'"),
    "anthropic-python": _anthropic("client = anthropic.Anthropic()  # model='MODEL'"),
    "claude-code": _claude_code,
    "codex": _codex,
    "continue": _continue,
    "langchain-anthropic": _anthropic("ChatAnthropic(model='MODEL', base_url='URL')"),
    "langchain-openai": _openai("ChatOpenAI(model='MODEL', base_url='URL/v1')"),
    "litellm-anthropic": _anthropic("completion(model='anthropic/MODEL', api_base='URL', ...)"),
    "litellm-openai": _openai("completion(model='openai/MODEL', api_base='URL/v1', ...)"),
    "llamaindex": _code(
        "OpenAILike(model='MODEL', api_base='URL/v1', api_key='KEY', is_chat_model=True, "
        "is_function_calling_model=True)"
    ),
    "openai-agents": _openai("Agent(name='agent', model='MODEL')"),
    "openai-javascript": _openai("const client = new OpenAI(); // model: 'MODEL'"),
    "openai-python": _openai("client = openai.OpenAI()  # model='MODEL'"),
    "opencode": _opencode,
    "pydantic-ai-anthropic": _anthropic("Agent('anthropic:MODEL')"),
    "pydantic-ai-openai": _openai("Agent('openai-chat:MODEL')"),
    "qwen-code": _qwen_code,
    "vercel-anthropic": _code("createAnthropic({ baseURL: 'URL/v1', apiKey: 'KEY' })('MODEL')"),
    "vercel-openai": _code("createOpenAI({ baseURL: 'URL/v1', apiKey: 'KEY' })('MODEL')"),
    "vercel-openai-compatible": _code(
        "createOpenAICompatible({ name: 'tokenway', baseURL: 'URL/v1', apiKey: 'KEY' })('MODEL')"
    ),
}
"""Each client's settings by the name that `tokenway connect` takes."""
