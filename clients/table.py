"""The clients and their pins."""

from __future__ import annotations

from pathlib import Path

from clients.client import Backend, Call, Client, Protocol
from clients.installation import Npm, Pypi

SCRIPTS = Path(__file__).parent / "scripts"
PINS = Path(__file__).parent / "pins"

AIDER = Pypi("aider", PINS / "aider.txt")
PYTHON = Pypi("python", PINS / "python.txt")
NODE = Npm(
    "node",
    (
        "openai@6.49.0",
        "@anthropic-ai/sdk@1.14.0",
        "ai@6.0.325",
        "@ai-sdk/openai@3.0.141",
        "@ai-sdk/anthropic@3.0.140",
        "@ai-sdk/openai-compatible@2.0.92",
        "zod@4.1.13",
    ),
)
# Its release does not bear the newest Anthropic SDK.
PYDANTIC_AI = Pypi("pydantic-ai", PINS / "pydantic-ai.txt")
CLAUDE_CODE = Npm("claude-code", ("@anthropic-ai/claude-code@2.1.197",))
CODEX = Npm("codex", ("@openai/codex@0.171.0",))
OPENCODE = Npm("opencode", ("opencode-ai@1.18.33",))
CONTINUE = Npm("continue", ("@continuedev/cli@1.5.47",))
QWEN_CODE = Npm("qwen-code", ("@qwen-code/qwen-code@0.15.10",))


def _python(name: str, package: str, protocol: Protocol, script: str, *arguments: str) -> Client:
    return Client(
        name=name,
        settings=name,
        source=PYDANTIC_AI if package == "pydantic-ai-slim" else PYTHON,
        package=package,
        protocol=protocol,
        command=("python", str(SCRIPTS / script), *arguments),
    )


def _node(name: str, package: str, protocol: Protocol, script: str, *arguments: str) -> Client:
    return Client(
        name=name,
        settings=name,
        source=NODE,
        package=package,
        protocol=protocol,
        command=("/usr/bin/env", "node", f"{{home}}/{script}", *arguments),
    )


SDKS = (
    _python("openai-python", "openai", Protocol.CHAT, "with_openai.py"),
    _node("openai-javascript", "openai", Protocol.CHAT, "with_openai.mjs"),
    _python("anthropic-python", "anthropic", Protocol.MESSAGES, "with_anthropic.py"),
    _node("anthropic-javascript", "@anthropic-ai/sdk", Protocol.MESSAGES, "with_anthropic.mjs"),
    _python("langchain-openai", "langchain-openai", Protocol.CHAT, "with_langchain.py", "openai"),
    _python(
        "langchain-anthropic",
        "langchain-anthropic",
        Protocol.MESSAGES,
        "with_langchain.py",
        "anthropic",
    ),
    _python("llamaindex", "llama-index-llms-openai-like", Protocol.CHAT, "with_llamaindex.py"),
    _python("litellm-openai", "litellm", Protocol.CHAT, "with_litellm.py", "openai"),
    _python("litellm-anthropic", "litellm", Protocol.MESSAGES, "with_litellm.py", "anthropic"),
    _python(
        "pydantic-ai-openai",
        "pydantic-ai-slim",
        Protocol.CHAT,
        "with_pydantic_ai.py",
        "openai-chat",
    ),
    _python(
        "pydantic-ai-anthropic",
        "pydantic-ai-slim",
        Protocol.MESSAGES,
        "with_pydantic_ai.py",
        "anthropic",
    ),
    _python("openai-agents", "openai-agents", Protocol.RESPONSES, "with_openai_agents.py"),
    _node("vercel-openai", "@ai-sdk/openai", Protocol.RESPONSES, "with_vercel.mjs", "openai"),
    _node(
        "vercel-anthropic", "@ai-sdk/anthropic", Protocol.MESSAGES, "with_vercel.mjs", "anthropic"
    ),
    _node(
        "vercel-openai-compatible",
        "@ai-sdk/openai-compatible",
        Protocol.CHAT,
        "with_vercel.mjs",
        "openai-compatible",
    ),
)

AGENTS = (
    Client(
        name="claude-code, bare",
        settings="claude-code",
        source=CLAUDE_CODE,
        package="@anthropic-ai/claude-code",
        protocol=Protocol.MESSAGES,
        command=(
            *("claude", "-p", "{prompt}", "--output-format", "json"),
            *("--tools", "", "--system-prompt", "Be brief."),
        ),
        call=None,
    ),
    Client(
        name="claude-code",
        settings="claude-code",
        source=CLAUDE_CODE,
        package="@anthropic-ai/claude-code",
        protocol=Protocol.MESSAGES,
        command=("claude", "-p", "{prompt}", "--output-format", "json"),
        backend=Backend.SIMULATED,
        call=Call("Read", "file_path", "{file}"),
    ),
    Client(
        name="codex",
        settings="codex",
        source=CODEX,
        package="@openai/codex",
        protocol=Protocol.RESPONSES,
        command=(
            *("codex", "exec", "--skip-git-repo-check", "--json"),
            *("--sandbox", "danger-full-access", "{prompt}"),
        ),
        backend=Backend.SIMULATED,
        call=Call("exec_command", "cmd", "cat {file}"),
    ),
    Client(
        name="opencode",
        settings="opencode",
        source=OPENCODE,
        package="opencode-ai",
        protocol=Protocol.CHAT,
        command=("opencode", "run", "{prompt}"),
        backend=Backend.SIMULATED,
        call=Call("read", "filePath", "{file}"),
    ),
    Client(
        name="continue",
        settings="continue",
        source=CONTINUE,
        package="@continuedev/cli",
        protocol=Protocol.CHAT,
        command=("cn", "--config", "{home}/.continue/config.yaml", "-p", "{prompt}"),
        call=Call("Read", "filepath", "{file}"),
    ),
    Client(
        name="qwen-code",
        settings="qwen-code",
        source=QWEN_CODE,
        package="@qwen-code/qwen-code",
        protocol=Protocol.CHAT,
        command=("qwen", "--auth-type", "openai", "-p", "{prompt}"),
        backend=Backend.SIMULATED,
        call=Call("read_file", "file_path", "{file}"),
        # It sends everything to a proxy, whatever is said of exceptions.
        environ={"HTTP_PROXY": "", "HTTPS_PROXY": ""},
    ),
    Client(
        name="aider",
        settings="aider",
        source=AIDER,
        package="aider-chat",
        protocol=Protocol.CHAT,
        command=(
            *("aider", "--model", "openai/{model}", "--no-git", "--yes-always"),
            *("--no-check-update", "--no-show-model-warnings", "--no-analytics"),
            *("--message", "{prompt}", "{file}"),
        ),
        call=None,
    ),
)

CLIENTS = (*SDKS, *AGENTS)
