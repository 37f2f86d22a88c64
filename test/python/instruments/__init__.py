"""Tests of the instruments, in this process and with real torch."""
