"""Where the processes of this machine listen, as the kernel tells it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from pathlib import Path

LISTENING = "0A"


def family(pid: int) -> Iterator[int]:
    """The process and all that it started."""
    yield pid
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in list(Path(f"/proc/{pid}/task").iterdir()):
            for child in (task / "children").read_text().split():
                yield from family(int(child))


def sockets(pid: int) -> set[str]:
    """Inodes of the sockets that a process has open."""
    links = []
    # What was open may be closed by now, and who had it open may have ended.
    with suppress(FileNotFoundError):
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                links.append(str(fd.readlink()))
    return {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}


def listeners(pid: int) -> set[str]:
    """`host:port` of all that a process and its children listen at."""
    inodes = {inode for member in family(pid) for inode in sockets(member)}
    found = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if rest[5] in inodes and (state == LISTENING or table.startswith("udp")):
                found.add(address_of(local))
    return found


def address_of(hexadecimal: str) -> str:
    """From the kernel's form: words of four bytes, the lowest byte first."""
    host, _, port = hexadecimal.partition(":")
    words = bytes.fromhex(host)
    raw = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
    known = ip_address(raw)
    mapped = known.ipv4_mapped if isinstance(known, IPv6Address) else None
    return f"{mapped or known}:{int(port, 16)}"
