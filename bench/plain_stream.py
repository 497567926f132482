"""What streaming costs at least: an asyncio server that writes given frames, one after the other.

It reads a request to its end, answers with the frames of a file at a fixed pace, and closes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
from asyncio import StreamReader, StreamWriter
from pathlib import Path

from services.shared.announce import announce

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
)
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


async def serve(frames: list[bytes], pace_s: float) -> None:
    """Serves until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        await reader.readexactly(int(length[1]) if length else 0)
        writer.write(HEAD)
        for frame in frames:
            writer.write(b"%x\r\n%b\r\n" % (len(frame), frame))
            await writer.drain()
            await asyncio.sleep(pace_s)
        writer.write(b"0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        announce({"http": f"{host}:{port}"})
        await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    settings = json.loads(parser.parse_args().config.read_text("utf-8"))
    frames = [frame.encode() for frame in settings["frames"]]
    asyncio.run(serve(frames, settings["pace_s"]))


if __name__ == "__main__":
    main()
