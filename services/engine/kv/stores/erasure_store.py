"""Records spread over independent nodes, of which some may be lost."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from threading import BoundedSemaphore

from services.engine.kv.record import Payload, checksum, layout_digest
from services.engine.kv.store import StoreFailed
from services.engine.kv.stores.erasure_code import ErasureCode
from services.engine.kv.stores.fragment import Fragment, Stripe, sealed_fragment
from services.engine.kv.stores.node_crews import NodeCrews
from services.engine.kv.stores.stripe_reading import StripeReading

MENDINGS = 4
"""Records whose lost fragments are written again at a time."""

MOST_BROKEN = 4096
"""Addresses that are remembered as unreadable."""


class ErasureStore:
    """`Store` over nodes: any `code.data` of them give a record back.

    A node's place in `crews` is the index of its fragments. A record that is read while nodes
    have lost their fragments is mended: they get them anew.
    """

    def __init__(self, crews: NodeCrews, code: ErasureCode, layout_id: str) -> None:
        self._crews = crews
        self._code = code
        self._layout = layout_digest(layout_id)
        self._mending = BoundedSemaphore(MENDINGS)
        # Unreadable although there is something: written again, since nobody has it.
        self._broken: set[bytes] = set()

    def get(self, address: bytes) -> Payload | None:
        """Empty where damaged fragments leave too few: the reader finds that it is no record."""
        reading = self._read(address)
        whole = reading.whole()
        if whole is not None:
            return self._joined(address, *whole, reading)
        failure = reading.failure()
        lost = len(reading.failures) > self._code.parity
        if failure is not None and (reading.found or lost):
            raise failure
        if not reading.found:
            return None
        self._note_broken(address)
        return b"" if reading.damaged else None

    def put(self, address: bytes, record: Payload) -> None:
        """Raises StoreFailed when fewer fragments are written than make a record."""
        sealed = self._sealed(address, record)
        outcomes = list(self._crews.ask_all(lambda index, node: node.put(address, sealed[index])))
        failures = [outcome for _, outcome in outcomes if isinstance(outcome, StoreFailed)]
        if len(outcomes) - len(failures) < self._code.data:
            raise StoreFailed(f"{len(failures)} of {len(outcomes)} nodes fail: {failures[0]}")
        self._broken.discard(address)

    def present(self, addresses: Sequence[bytes]) -> list[bool]:
        """Those of which enough fragments are there."""
        counts, failures = [0] * len(addresses), []
        for _, answer in self._crews.ask_all(lambda _, node: node.present(addresses)):
            if isinstance(answer, StoreFailed):
                failures.append(answer)
            else:
                counts = [count + has for count, has in zip(counts, answer, strict=True)]
        if len(failures) > self._code.parity:
            raise failures[0]
        return [
            count >= self._code.data and address not in self._broken
            for count, address in zip(counts, addresses, strict=True)
        ]

    def flush(self) -> int:
        """Raises StoreFailed when so many nodes fail that records may be left."""
        outcomes = [outcome for _, outcome in self._crews.ask_all(lambda _, node: node.flush())]
        failures = [outcome for outcome in outcomes if isinstance(outcome, StoreFailed)]
        if len(failures) >= self._code.data:
            raise failures[0]
        return max(outcome for outcome in outcomes if not isinstance(outcome, StoreFailed))

    def close(self) -> None:
        self._crews.close()

    def _read(self, address: bytes) -> StripeReading:
        """Asks all, and waits for as many as it needs."""
        nodes = len(self._crews.nodes)
        reading = StripeReading(address, self._layout, self._code.data, nodes)
        with closing(self._crews.ask_all(lambda _, node: node.get(address))) as answers:
            for index, answer in answers:
                reading.add(index, answer)
                if reading.whole() is not None:
                    break
        return reading

    def _joined(
        self, address: bytes, stripe: Stripe, fragments: list[Fragment], reading: StripeReading
    ) -> Payload:
        shape = (self._code.number, self._code.data, self._code.parity)
        if (stripe.code, stripe.data, stripe.parity) != shape:
            self._note_broken(address)
            return b""
        try:
            record = self._code.joined([fragment.payload for fragment in fragments])
        except ValueError:
            record = b""
        if len(record) != stripe.size or self._digest(address, record) != stripe.digest:
            self._note_broken(address)
            return b""
        self._mend(address, record, reading.others(stripe))
        return record

    def _mend(self, address: bytes, record: bytes, nodes: Collection[int]) -> None:
        """Writes the fragments of `nodes` beside what goes on; leaves it when there is much."""
        if not nodes or not self._mending.acquire(blocking=False):
            return
        sealed = self._sealed(address, record)
        try:
            writes = [
                self._crews.start(index, lambda index, node: node.put(address, sealed[index]))
                for index in nodes
            ]
        except StoreFailed:
            self._mending.release()
            return
        writes[0].add_done_callback(lambda _: self._mending.release())

    def _sealed(self, address: bytes, record: Payload) -> list[bytes]:
        size, digest = memoryview(record).nbytes, self._digest(address, record)
        code = self._code
        stripe = Stripe(code.number, code.data, code.parity, size, digest)
        return [
            sealed_fragment(Fragment(stripe, index, payload), address, self._layout)
            for index, payload in enumerate(code.split(record))
        ]

    def _digest(self, address: bytes, record: Payload) -> bytes:
        return checksum(address, self._layout, record)

    def _note_broken(self, address: bytes) -> None:
        if len(self._broken) < MOST_BROKEN:
            self._broken.add(address)
