"""A process that uses the shared file as a test tells it: `python file_user.py PATH BYTES DOES`."""

from __future__ import annotations

import signal
import sys
from itertools import count
from pathlib import Path

from services.engine.kv.stores.lmdb_store import LmdbStore
from tests.engine.kv.stores.bed import LAYOUT, address_of, has, put, record_of


def main() -> None:
    path, max_bytes, does = sys.argv[1:]
    store = LmdbStore(Path(path), int(max_bytes), LAYOUT, ttl_s=600)
    put(store, 0)
    print("ready", flush=True)  # noqa: T201 the test waits for it
    if does == "write":
        # Until it is killed, in whatever it does then.
        for number in count(1):
            store.put(address_of(number % 50), record_of(number % 50))
    elif does == "read":
        file = store._file.current()
        with file.env.begin() as txn:
            assert txn.get(next(iter(file.order.keys(txn, b""))), db=file.records)
            signal.pause()
    elif does == "serve":
        for line in sys.stdin:
            number = int(line)
            print(has(store, number), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
