"""An assembler for classic BPF, as far as a system call filter needs it.

Each function returns one instruction of eight bytes. Jumps are relative and
at most 255 instructions long, so filters are laid out as short blocks that end
in their own return.
"""

import struct

LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
JUMP_GREATER = 0x25  # BPF_JMP | BPF_JGT | BPF_K
JUMP_GREATER_EQUAL = 0x35  # BPF_JMP | BPF_JGE | BPF_K
JUMP_ANY_BITS = 0x45  # BPF_JMP | BPF_JSET | BPF_K
RETURN = 0x06  # BPF_RET | BPF_K

#: Offsets into struct seccomp_data. Both supported machines are little-endian,
#: so an argument's low 32 bits come first.
OFFSET_NUMBER = 0
OFFSET_ARCH = 4
OFFSET_ARGUMENTS = 16

RETURN_KILL_PROCESS = 0x8000_0000
RETURN_ERRNO = 0x0005_0000
RETURN_ALLOW = 0x7FFF_0000

#: The kernel's limit on the length of one program.
MAX_INSTRUCTIONS = 4096


def instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Encode one instruction.

    Raises:
        ValueError: A jump does not fit its eight bits.
    """
    if not (0 <= if_true <= 255 and 0 <= if_false <= 255):
        raise ValueError(f"jump of {max(if_true, if_false)} instructions does not fit a byte")
    return struct.pack("=HBBI", code, if_true, if_false, operand & 0xFFFF_FFFF)


def load(offset: int) -> bytes:
    """Load 32 bits of seccomp_data."""
    return instruction(LOAD, offset)


def load_argument(index: int) -> bytes:
    """Load the low 32 bits of argument `index` (0 to 5)."""
    return load(OFFSET_ARGUMENTS + 8 * index)


def give(value: int) -> bytes:
    """End the program with `value`."""
    return instruction(RETURN, value)


def give_errno(code: int) -> bytes:
    """End the program: the call fails with errno `code`."""
    return give(RETURN_ERRNO | (code & 0xFFFF))
