"""Why nobody answers at an address: nobody is there, or the two ends do not trust each other."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress

from services.launcher.own_certificates import NONE, Calling

TIMEOUT_S = 2.0


async def why_no_answer(callee: str, at: str, calling: Calling) -> str:
    """One line for the operator, after a call that did not come through.

    Args:
        callee: what should be there, for example `router`.
        at: `host:port`.
        calling: how it was called.
    """
    speaks_tls = await _speaks_tls(at)
    if speaks_tls is None:
        return f"no {callee} answers at {at}; name one by --at host:port"
    if calling.certificates is None:
        if speaks_tls:
            return f"{at} asks for a certificate; name ours by --certificates DIR"
        return f"no {callee} answers at {at}, though something listens; name one by --at host:port"
    if not speaks_tls:
        return f"{at} has no certificate; --certificates {NONE} calls in the clear"
    return (
        f"{at} and we do not trust each other: it does not take the certificate in "
        f"{calling.certificates}, or has none itself of {calling.name}; see `tokenway certs show`"
    )


async def _speaks_tls(at: str) -> bool | None:
    """None: nobody takes connections there."""
    host, _, port = at.rpartition(":")
    # It only asks whether TLS is spoken: nothing is sent and nothing believed.
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    anybody.set_alpn_protocols(["h2"])
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await _greeted(host.strip("[]"), int(port), anybody)
    except TimeoutError:
        return False
    except (OSError, ValueError):
        return None


async def _greeted(host: str, port: int, context: ssl.SSLContext) -> bool:
    """Raises OSError where no connection comes to be."""
    _, clear = await asyncio.open_connection(host, port)
    clear.close()
    with suppress(OSError):
        await clear.wait_closed()
    try:
        _, writer = await asyncio.open_connection(host, port, ssl=context)
    except OSError:  # an SSLError is one
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True
