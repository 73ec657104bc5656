"""A child process that is asked in lines: one line in, one line out, within a time limit.

Standard input, output and error are served by one loop over non-blocking pipes, so that no length of question, answer
or diagnostics can make the two sides wait for each other.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import IO

TAIL_LINES = 8
"""How many of the last lines on standard error a report of death quotes."""

LONGEST_LINE = 1 << 30
"""Bytes of an answer after which the child is taken to have lost its way."""

_CHUNK = 1 << 16


class ProcessDied(Exception):
    """The child ended, or was ended because it did not answer in time.

    Attributes:
        timed_out: it was ended because the time was up.
    """

    def __init__(self, reason: str, *, timed_out: bool = False) -> None:
        super().__init__(reason)
        self.timed_out = timed_out


class LineProcess:
    """One running child.

    Args:
        command: the program and its arguments; the program is looked for as a shell would.

    Raises:
        OSError: the program cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        # A session of its own, so that ending it also ends what it started, and Ctrl-C reaches it as end of input.
        self._child = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._stdin, self._stdout, self._stderr = _streams(self._child)
        for stream in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(stream.fileno(), False)
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._partial = b""
        self._left = b""
        self._finalizer = weakref.finalize(self, _end, self._child)

    def ask(self, line: bytes, timeout: float) -> bytes:
        """Send one line and wait for one line. Neither holds its line feed.

        Args:
            line: the question.
            timeout: seconds for all of it.

        Raises:
            ProcessDied: the child ended or did not answer in time. It is not running any more.
        """
        deadline = time.monotonic() + timeout
        unsent = memoryview(line + b"\n")
        answer = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdin, selectors.EVENT_WRITE)
            selector.register(self._stdout, selectors.EVENT_READ)
            selector.register(self._stderr, selectors.EVENT_READ)
            complete = self._take(self._left, answer)
            while unsent or not complete:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise self._death(f"gave no answer within {timeout:g} s and was ended", timed_out=True)
                for key, _ in selector.select(remaining):
                    if key.fileobj is self._stdin:
                        try:
                            unsent = unsent[os.write(self._stdin.fileno(), unsent[:_CHUNK]) :]
                        except BlockingIOError:
                            continue
                        except BrokenPipeError:
                            unsent = memoryview(b"")
                        if not unsent:
                            selector.unregister(self._stdin)
                    elif key.fileobj is self._stdout:
                        chunk = os.read(self._stdout.fileno(), _CHUNK)
                        if not chunk:
                            raise self._death(None)
                        if complete:
                            self._left += chunk
                        else:
                            complete = self._take(chunk, answer)
                        if len(answer) > LONGEST_LINE:
                            raise self._death(f"wrote {len(answer)} bytes without a line feed and was ended")
                    elif not self._diagnostics():
                        selector.unregister(self._stderr)
        self._diagnostics()
        return bytes(answer)

    def _take(self, chunk: bytes, answer: bytearray) -> bool:
        """Add a piece of output to the answer; True when the answer's line is complete."""
        head, line_feed, self._left = chunk.partition(b"\n")
        answer += head
        return bool(line_feed)

    def _diagnostics(self) -> bool:
        """Pass on what stands on standard error now, and remember its end. False at its end of file."""
        while True:
            try:
                chunk = os.read(self._stderr.fileno(), _CHUNK)
            except (BlockingIOError, ValueError):
                return True
            if not chunk:
                return False
            text = chunk.decode(errors="replace")
            with contextlib.suppress(OSError, ValueError):  # The suite's own stderr may be closed.
                sys.stderr.write(text)
            *lines, self._partial = (self._partial + chunk).split(b"\n")
            self._tail.extend(line.decode(errors="replace") for line in lines)

    def _death(self, reason: str | None, *, timed_out: bool = False) -> ProcessDied:
        """End the child and say what happened to it."""
        if reason is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(0.5)
            reason = _how_it_ended(self._child.returncode)
        _kill(self._child)
        self._diagnostics()
        if self._partial:
            self._tail.append(self._partial.decode(errors="replace"))
        quoted = " | ".join(line for line in self._tail if line.strip())
        told = f"; last lines on standard error: {quoted}" if quoted else "; nothing on standard error"
        self._finalizer()
        return ProcessDied(reason + told, timed_out=timed_out)

    def kill(self) -> None:
        """End the child at once."""
        _kill(self._child)
        self._finalizer()

    def close(self) -> None:
        """Close the child's input, wait for it to end, and end it if it does not. May be called twice."""
        self._finalizer()


def _streams(child: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    """Standard input, output and error, which were all asked for."""
    if child.stdin is None or child.stdout is None or child.stderr is None:
        raise RuntimeError("the child was started without pipes")
    return child.stdin, child.stdout, child.stderr


def _how_it_ended(status: int | None) -> str:
    if status is None:
        return "closed its standard output and was ended"
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = "unknown"
    return f"was ended by signal {-status} ({name})"


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the child's session. Its leader is not waited for before, so the number is still its own."""
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _end(child: subprocess.Popen[bytes]) -> None:
    stdin, stdout, stderr = _streams(child)
    with contextlib.suppress(OSError):
        stdin.close()
    try:
        child.wait(2)
    except subprocess.TimeoutExpired:
        _kill(child)
    stdout.close()
    stderr.close()
