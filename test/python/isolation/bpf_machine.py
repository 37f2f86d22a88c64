"""A tiny interpreter for compiled filters, so that the filter of a machine we are not on can be examined."""

import struct

from worker.isolation import bpf


def evaluate(program: bytes, arch: int, nr: int, arguments: tuple[int, ...] = ()) -> int:
    """The value the filter returns for a call."""
    values = [argument & 0xFFFF_FFFF_FFFF_FFFF for argument in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    data = struct.pack("<IIQ6Q", nr & 0xFFFF_FFFF, arch, 0, *values)
    accumulator = 0
    position = 0
    while True:
        code, if_true, if_false, operand = struct.unpack_from("=HBBI", program, 8 * position)
        position += 1
        if code == bpf.LOAD:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif code == bpf.AND:
            accumulator &= operand
        elif code == bpf.RETURN:
            return int(operand)
        else:
            matches = {
                bpf.JUMP_EQUAL: accumulator == operand,
                bpf.JUMP_GREATER: accumulator > operand,
                bpf.JUMP_GREATER_EQUAL: accumulator >= operand,
                bpf.JUMP_ANY_BITS: bool(accumulator & operand),
            }[code]
            position += if_true if matches else if_false
