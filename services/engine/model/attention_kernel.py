"""The compiled attention kernel for a CPU.

It is compiled twice from one source, serial and parallel. A row's result depends on neither that
nor the other rows of the step. Intrinsics and kernel share this file because numba's cache of
compiled code looks for changes only in the kernel's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import literally, prange, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from services.engine.model.compiled import Kernel, compiled, exp, inlined

LANES = 16
"""Positions of a block, and elements of a vector."""

TILE_ROWS = 2
"""Rows of one sequence that go over its keys together."""

_FLOAT = ir.FloatType()
_INT = ir.IntType(32)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_BYTE_POINTER = ir.IntType(8).as_pointer()


class _Vectors:
    """Writes LLVM code on vectors of LANES floats."""

    def __init__(self, context: Any, builder: Any) -> None:
        self._context = context
        self._builder = builder

    def pointer(self, array_type: Any, array: Any) -> Any:
        data = self._context.make_array(array_type)(self._context, self._builder, array).data
        return self._builder.bitcast(data, _FLOAT.as_pointer())

    def at(self, pointer: Any, element: int) -> Any:
        return self._builder.gep(pointer, [_INT(element)])

    def load(self, pointer: Any, element: int) -> Any:
        vectors = self._builder.bitcast(self.at(pointer, element), _VECTOR.as_pointer())
        value = self._builder.load(vectors)
        value.align = 4
        return value

    def store(self, value: Any, pointer: Any, element: int) -> None:
        vectors = self._builder.bitcast(self.at(pointer, element), _VECTOR.as_pointer())
        self._builder.store(value, vectors).align = 4

    def splat(self, pointer: Any, element: int) -> Any:
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        value = self._builder.load(self.at(pointer, element))
        first = self._builder.insert_element(undefined, value, _INT(0))
        lanes = ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES)
        return self._builder.shuffle_vector(first, undefined, lanes)

    def multiply_add(self, left: Any, right: Any, addend: Any) -> Any:
        flags = ["contract"]
        product = self._builder.fmul(left, right, flags=flags)
        return self._builder.fadd(product, addend, flags=flags)

    def rows(self, array_type: Any, array: Any, count: int, offset: Any) -> list[Any]:
        """Pointers to element `offset` of the first rows of a two-dimensional array."""
        shape = self._context.make_array(array_type)(self._context, self._builder, array).shape
        stride = self._builder.extract_value(shape, 1)
        row = self._builder.gep(self.pointer(array_type, array), [offset])
        pointers = [row]
        while len(pointers) < count:
            pointers.append(self._builder.gep(pointers[-1], [stride]))
        return pointers

    def prefetch(self, pointer: Any, element: int) -> None:
        signature = ir.FunctionType(ir.VoidType(), [_BYTE_POINTER, _INT, _INT, _INT])
        function = self._builder.module.declare_intrinsic(
            "llvm.prefetch", [_BYTE_POINTER], signature
        )
        address = self._builder.bitcast(self.at(pointer, element), _BYTE_POINTER)
        self._builder.call(function, [address, _INT(0), _INT(3), _INT(1)])


def _block_scores(  # noqa: PLR0917 -- numba gives arguments by position
    _: Any, query: Any, block: Any, later: Any, scores: Any, at: Any, group: Any, head_dim: Any
) -> Any:
    """scores[g, at + t] = sum over d of query[g * head_dim + d] * block[0, d * LANES + t].

    It has the block's values and the keys of the `later` block brought nearer meanwhile.
    """
    rows, depth = group.literal_value, head_dim.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Vectors(context, builder)
        queries, keys, upcoming = (emit.pointer(signature.args[i], arguments[i]) for i in range(3))
        # Two sums for each row: a single one would wait for its own last addition.
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        sums = [[zero, zero] for _ in range(rows)]
        for d in range(depth):
            emit.prefetch(upcoming, d * LANES)
            emit.prefetch(keys, (depth + d) * LANES)
            column = emit.load(keys, d * LANES)
            for g in range(rows):
                factor = emit.splat(queries, g * depth + d)
                sums[g][d % 2] = emit.multiply_add(factor, column, sums[g][d % 2])
        for g, target in enumerate(emit.rows(signature.args[3], arguments[3], rows, arguments[4])):
            emit.store(builder.fadd(*sums[g]), target, 0)
        return context.get_dummy_value()

    return types.void(query, block, later, scores, at, group, head_dim), generate


def _add_values(  # noqa: PLR0917 -- numba gives arguments by position
    _: Any, scores: Any, at: Any, block: Any, out: Any, group: Any, head_dim: Any
) -> Any:
    """out[g * head_dim + d] += sum over t of scores[g, at + t] * block[1, t * head_dim + d]."""
    rows, depth = group.literal_value, head_dim.literal_value
    vectors = depth // LANES

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Vectors(context, builder)
        block_start, target = (emit.pointer(signature.args[i], arguments[i]) for i in (2, 3))
        values = emit.at(block_start, depth * LANES)
        weights = emit.rows(signature.args[0], arguments[0], rows, arguments[1])
        sums = [emit.load(target, i * LANES) for i in range(rows * vectors)]
        for t in range(LANES):
            row = [emit.load(values, t * depth + i * LANES) for i in range(vectors)]
            for g in range(rows):
                factor = emit.splat(weights[g], t)
                for i in range(vectors):
                    sums[g * vectors + i] = emit.multiply_add(factor, row[i], sums[g * vectors + i])
        for i, value in enumerate(sums):
            emit.store(value, target, i * LANES)
        return context.get_dummy_value()

    return types.void(scores, at, block, out, group, head_dim), generate


block_scores = intrinsic(prefer_literal=True)(_block_scores)
add_values = intrinsic(prefer_literal=True)(_add_values)


def _turn(head: Any, angles: Any, scale: Any) -> None:
    # Halves as arrays of their own: an index that is a sum keeps the loop from being vectorised.
    half = len(head) // 2
    lefts, rights, cosines, sines = head[:half], head[half:], angles[:half], angles[half:]
    for i in range(half):
        left, right = lefts[i] * scale, rights[i] * scale
        lefts[i] = left * cosines[i] - right * sines[i]
        rights[i] = right * cosines[i] + left * sines[i]


def _keep(block: Any, offset: Any, key: Any, value: Any) -> None:
    head_dim = len(key)
    for d in range(head_dim):
        block[0, d * LANES + offset] = key[d]
        block[1, offset * head_dim + d] = value[d]


def _place(line: Any, angles: Any, block: Any, offset: Any, scale: Any) -> None:
    """Turns the queries and keys of a row, and keeps its keys and values at `offset` of `block`."""
    kv_heads, head_dim = len(block), len(angles)
    keys = len(line) // head_dim - 2 * kv_heads
    for head in range(keys):
        turn(line[head * head_dim : (head + 1) * head_dim], angles, scale)
    for head in range(kv_heads):
        key_at = (keys + head) * head_dim
        value_at = key_at + kv_heads * head_dim
        key = line[key_at : key_at + head_dim]
        turn(key, angles, np.float32(1.0))
        keep(block[head], offset, key, line[value_at : value_at + head_dim])


def _softmax(scores: Any, end: Any, padded: Any) -> None:
    """Replaces scores[:end] by weights that sum to one, and scores[end:padded] by zeros."""
    best = scores[0]
    for t in range(1, end):
        best = max(best, scores[t])
    total = np.float32(0.0)
    for t in range(end):
        scores[t] = exp(scores[t] - best)
        total += scores[t]
    inverse = np.float32(1.0) / total
    for t in range(end):
        scores[t] *= inverse
    for t in range(end, padded):
        scores[t] = np.float32(0.0)


def _attend(rows: Any, pages: Any, work: Any, heads: Any, head_dim: Any) -> None:
    """Attention of one tile, of `heads` heads in all.

    `rows` is (queries, out), each [rows, heads / rows * head_dim]; `pages` is (cache, kv_head,
    table, positions that the last row sees); `work` is one worker's scratch.
    """
    literally(heads)
    literally(head_dim)
    queries, out = rows
    cache, kv_head, table, end = pages
    query, total, scores = work[0], work[1], work[2:]
    count, width = queries.shape
    for r in range(count):
        query[r * width : (r + 1) * width] = queries[r]
    blocks = -(-end // LANES)
    for b in range(blocks):
        later = cache[table[min(b + 1, blocks - 1)], kv_head]
        block_scores(query, cache[table[b], kv_head], later, scores, b * LANES, heads, head_dim)
    for h in range(heads):
        softmax(scores[h], end - count + 1 + h * count // heads, blocks * LANES)
    total[: heads * head_dim] = np.float32(0.0)
    for b in range(blocks):
        add_values(scores, b * LANES, cache[table[b], kv_head], total, heads, head_dim)
    for r in range(count):
        out[r] = total[r * width : (r + 1) * width]


turn = inlined(_turn, fast=True)
keep = inlined(_keep)
place = inlined(_place)
softmax = inlined(_softmax, fast=True)
attend = inlined(_attend)


SIGNATURE = (
    "(f4[:, ::1], i8[:, ::1], i8[:, ::1], i4[::1], f4[:, ::1], f4[:, :, :, ::1], f4[:, :, ::1], "
    "f4[:, ::1])"
)


def attention_kernel(group: int, head_dim: int, *, parallel: bool) -> Kernel:
    """Turns queries and keys, keeps keys and values, attends.

    Its arguments:
        qkv: fp32 [rows, (heads + 2 * kv_heads) * head_dim]; queries and keys come out turned.
        places: int64 [rows, 2]: the row's position, and where in `tables` its table begins.
        tiles: int64 [tiles, 2]: first row, and rows, 1 or TILE_ROWS, of one sequence in order.
        tables: int32, block IDs of all sequences, one after the other.
        rope: fp32 [positions, head_dim].
        cache: fp32 [blocks, kv_heads, 2, head_dim * LANES], as in `KvPool`.
        scratch: as `attention_scratch` makes it.
        out: fp32 [rows, heads * head_dim].
    """
    each = prange if parallel else range
    scale = np.float32(head_dim**-0.5)
    width = group * head_dim
    heads = TILE_ROWS * group

    def kernel(  # noqa: PLR0917 -- few arrays, and tuples take longer to hand over
        qkv: Any,
        places: Any,
        tiles: Any,
        tables: Any,
        rope: Any,
        cache: Any,
        scratch: Any,
        out: Any,
    ) -> None:
        for row in each(len(qkv)):
            position, table_at = places[row]
            block = cache[tables[table_at + position // LANES]]
            place(qkv[row], rope[position], block, position % LANES, scale)
        for worker in each(len(scratch)):
            for item in range(worker, len(tiles) * cache.shape[1], len(scratch)):
                first, rows = tiles[item % len(tiles)]
                head = item // len(tiles)
                here = slice(first, first + rows), slice(head * width, (head + 1) * width)
                tile = qkv[here], out[here]
                pages = (cache, head, tables[places[first, 1] :], places[first, 0] + rows)
                if rows == 1:
                    attend(tile, pages, scratch[worker], group, head_dim)
                else:
                    attend(tile, pages, scratch[worker], heads, head_dim)

    return compiled(kernel, SIGNATURE, parallel=parallel, shape=(group, head_dim))


def attention_scratch(
    workers: int, group: int, head_dim: int, positions: int
) -> NDArray[np.float32]:
    """Memory for the kernel: of each worker two lines of a tile, and one for each head's scores."""
    heads = TILE_ROWS * group
    line = max(-(-positions // LANES) * LANES, heads * head_dim)
    return np.empty((workers, 2 + heads, line), np.float32)
