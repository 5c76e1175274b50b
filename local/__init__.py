"""The function on one machine: translating from a shell, and invoking it under the Runtime Interface Emulator."""
