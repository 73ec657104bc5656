"""Any program, in any language, as a backend: JSON lines over standard input and output.

The protocol is written down in ``docs/reference/pipe-protocol.md``. What this module adds is the care for a program
that misbehaves. When it dies or does not answer in time, it is started again; a batch is halved until the guilty
program is found, a single request is tried once more after a death (never after a time-out), and what still fails is
`Unsupported` with the exit status or signal and the last lines on standard error. An answer that breaks the protocol
is an error of the runner, not a missing feature, and raises `PipeError`.
"""

from __future__ import annotations

import json
import os
import shlex
import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from halfulp.adapters.process import LineProcess, ProcessDied
from halfulp.adapters.protocol import (
    Array,
    Compiled,
    Facts,
    Options,
    Rejected,
    Unsupported,
    UnsupportedError,
)
from halfulp.adapters.wire import WireError, array_from_json, array_to_json
from halfulp.oracle import kernel as kernels
from halfulp.oracle import source as sources
from halfulp.oracle.kernel import Kernel, Type
from halfulp.oracle.source import Source

VERSION = 1
"""Version of the protocol, the value of ``"halfulp"`` in every request."""

TIMEOUT = 60.0
"""Seconds for one request; the environment variable ``HALFULP_PIPE_TIMEOUT`` sets another number."""


class PipeError(RuntimeError):
    """The program cannot be started, or does not keep to the protocol."""


class PipeWarning(UserWarning):
    """The program died and answered the same request when it was started again."""


class PipeAdapter:
    """A backend behind a pipe.

    Args:
        command: the program and its arguments, as words or as a line that is split as a shell would.
        timeout: seconds for one request. None: ``HALFULP_PIPE_TIMEOUT``, or 60.

    Raises:
        PipeError: the program cannot be started, or does not answer ``hello`` properly.
    """

    def __init__(self, command: str | Sequence[str], timeout: float | None = None) -> None:
        self._command = shlex.split(command) if isinstance(command, str) else list(command)
        self._timeout = _timeout() if timeout is None else timeout
        self._process: LineProcess | None = None
        self._generation = 0
        self._last_id = 0
        self._unused: list[tuple[int, int]] = []
        try:
            hello = self._start()
        except ProcessDied as death:
            raise PipeError(f"{self._command[0]} {death} instead of answering hello") from death
        self.name: str = hello[0]
        self.opt_levels: Sequence[int] = hello[1]
        self.facts: Facts = hello[2]

    def compile(self, programs: Sequence[Kernel | Source], options: Options) -> list[Compiled | Rejected | Unsupported]:
        """See `Adapter.compile`.

        Raises:
            PipeError: the program breaks the protocol.
        """
        self._release()
        return self._compile(list(programs), {"opt_level": options.opt_level}) if programs else []

    def artifact(self, kernel: Kernel, options: Options) -> str:
        """See `HasArtifact.artifact`."""
        message = {"program": kernels.to_json(kernel), "options": {"opt_level": options.opt_level}}
        try:
            reply = self._request("artifact", message)
        except ProcessDied as death:
            raise UnsupportedError(f"{self.name} {death}") from death
        match reply:
            case {"artifact": str(text)}:
                return text
            case {"unsupported": str(reason)}:
                raise UnsupportedError(reason)
        raise self._broken("artifact", "the answer has neither artifact nor unsupported (text each)")

    def close(self) -> None:
        """End the program: its input is closed, and it has two seconds to end by itself."""
        if self._process is not None:
            self._process.close()
            self._process = None
            self._generation += 1

    # The conversation.

    def _start(self) -> tuple[str, tuple[int, ...], Facts]:
        try:
            self._process = LineProcess(self._command)
        except OSError as error:
            raise PipeError(
                f"cannot start {self._command[0]!r}: {error.strerror or error}; relative names count from "
                f"{os.getcwd()}, and the file must be executable"
            ) from error
        self._generation += 1
        return self._read_hello(self._exchange("hello", {}))

    def _request(self, kind: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """Ask, on a program that runs; it is started where it does not.

        Raises:
            ProcessDied, PipeError
        """
        if self._process is None:
            self._start()
        return self._exchange(kind, message)

    def _exchange(self, kind: str, message: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process is not None
        self._last_id += 1
        line = json.dumps({"halfulp": VERSION, "id": self._last_id, "type": kind, **message}).encode()
        try:
            answer = self._process.ask(line, self._timeout)
        except BaseException:  # Dead, or interrupted: then an answer to nothing would be left in the pipe.
            self._drop()
            raise
        try:
            reply = json.loads(answer)
        except ValueError as error:
            raise self._broken(
                kind,
                f"not a line of JSON: {_excerpt(answer)} ({error}); standard output carries answers only, "
                "diagnostics belong on standard error",
            ) from error
        if not isinstance(reply, dict):
            raise self._broken(kind, f"not a JSON object: {_excerpt(answer)}")
        if reply.get("id") is None and "error" in reply:
            raise self._broken(kind, f"the error {reply['error']!r} without an id")
        if reply.get("id") != self._last_id or isinstance(reply["id"], bool):
            raise self._broken(kind, f"its id is {reply.get('id')!r}, the request had {self._last_id}")
        if "error" in reply:
            raise PipeError(f"{self._command[0]} reports an error for a {kind} request: {reply['error']}")
        return reply

    def _broken(self, kind: str, what: str) -> PipeError:
        """An answer that breaks the protocol. The program is ended: nobody knows what its next line answers."""
        self._drop()
        return PipeError(f"{self._command[0]} answers a {kind} request against the protocol: {what}")

    def _drop(self) -> None:
        """End the program, if it still runs. Its handles are void."""
        if self._process is not None:
            self._process.kill()
            self._process = None
            self._generation += 1

    def _read_hello(self, reply: dict[str, Any]) -> tuple[str, tuple[int, ...], Facts]:
        if reply.get("halfulp") != VERSION:
            raise self._broken("hello", f"halfulp is {reply.get('halfulp')!r}, not the version {VERSION}")
        name, levels, facts = reply.get("name"), reply.get("opt_levels", [0]), reply.get("facts", {})
        if not isinstance(name, str) or not name:
            raise self._broken("hello", f"name is {name!r}, not a text")
        if not isinstance(levels, list) or not levels or not all(type(level) is int for level in levels):
            raise self._broken("hello", f"opt_levels is {levels!r}, not a list of integers")
        if not isinstance(facts, dict):
            raise self._broken("hello", f"facts is {facts!r}, not an object")
        truths = ("flushes_subnormals", "fuses_multiply_add")
        for key, value in facts.items():
            if key in truths and not (value is None or isinstance(value, bool)):
                raise self._broken("hello", f"the fact {key} is {value!r}, not true, false or null")
            if key not in (*truths, "versions"):
                raise self._broken("hello", f"there is no fact {key!r}; known: {', '.join(truths)}, versions")
        versions = facts.get("versions", {})
        if not isinstance(versions, dict) or not all(isinstance(text, str) for text in versions.values()):
            raise self._broken("hello", f"the fact versions is {versions!r}, not an object of texts")
        declared = Facts(facts.get(truths[0]), facts.get(truths[1]), versions)
        return name, tuple(levels), declared

    # Compiling.

    def _compile(
        self, programs: list[Kernel | Source], options: dict[str, Any]
    ) -> list[Compiled | Rejected | Unsupported]:
        """Compile a batch. When it kills the program, halve it until the guilty one stands alone."""
        for attempt in (1, 2):
            try:
                answers = self._compile_once(programs, options)
                break
            except ProcessDied as death:
                if len(programs) > 1:
                    middle = len(programs) // 2
                    return self._compile(programs[:middle], options) + self._compile(programs[middle:], options)
                if attempt == 2 or death.timed_out:
                    return [Unsupported(f"{self.name} {death}")]
                self._warn(death, "compile")
        remotes: list[Compiled | Rejected | Unsupported] = []
        for program, answer in zip(programs, answers, strict=True):
            if isinstance(answer, int):
                remotes.append(_Remote(self, program, options, answer, self._generation))
            else:
                remotes.append(answer)
        return remotes

    def _compile_once(
        self, programs: Sequence[Kernel | Source], options: Mapping[str, Any]
    ) -> list[int | Rejected | Unsupported]:
        """One compile request; a handle, or why there is none, for each program."""
        data = [kernels.to_json(p) if isinstance(p, Kernel) else sources.to_json(p) for p in programs]
        reply = self._request("compile", {"options": options, "programs": data})
        answers = reply.get("answers")
        if not isinstance(answers, list) or len(answers) != len(programs):
            got = f"{len(answers)} of them" if isinstance(answers, list) else repr(answers)
            raise self._broken("compile", f"answers must be a list of {len(programs)}, got {got}")
        read: list[int | Rejected | Unsupported] = []
        for position, answer in enumerate(answers):
            match answer:
                case {"ok": int(handle)} if len(answer) == 1 and not isinstance(handle, bool):
                    read.append(handle)
                case {"rejected": str(reason)} if len(answer) == 1:
                    read.append(Rejected(reason))
                case {"unsupported": str(reason)} if len(answer) == 1:
                    read.append(Unsupported(reason))
                case _:
                    raise self._broken(
                        "compile",
                        f"answer {position} is {_excerpt(json.dumps(answer).encode())}, not one of "
                        '{"ok": HANDLE}, {"rejected": REASON}, {"unsupported": REASON}',
                    )
        return read

    def _warn(self, death: ProcessDied, kind: str) -> None:
        warnings.warn(
            f"{self.name} {death}; it is started again and asked once more ({kind})", PipeWarning, stacklevel=4
        )

    def _forget(self, generation: int, handle: int) -> None:
        """Note that a compiled program is not used any more. Called at any time: nothing is sent from here."""
        self._unused.append((generation, handle))

    def _release(self) -> None:
        """Tell the program which handles it may forget."""
        unused, self._unused = self._unused, []
        handles = [handle for generation, handle in unused if generation == self._generation]
        if handles and self._process is not None:
            try:
                self._request("release", {"handles": handles})
            except ProcessDied as death:
                self._warn(death, "release")

    # Running.

    def _run(self, remote: _Remote, inputs: Sequence[Array]) -> list[Array]:
        for attempt in (1, 2):
            try:
                reply = self._run_once(remote, inputs)
                break
            except ProcessDied as death:
                if attempt == 2 or death.timed_out:
                    remote.failed = f"{self.name} {death}"
                    raise UnsupportedError(remote.failed) from death
                self._warn(death, "run")
        match reply:
            case {"unsupported": str(reason)}:
                raise UnsupportedError(reason)
            case {"outputs": list(outputs)}:
                return self._read_outputs(outputs, remote, inputs)
        raise self._broken("run", "the answer has neither outputs (a list) nor unsupported (a text)")

    def _run_once(self, remote: _Remote, inputs: Sequence[Array]) -> dict[str, Any]:
        if remote.generation != self._generation:
            (answer,) = self._compile_once([remote.program], remote.options)
            if not isinstance(answer, int):
                raise UnsupportedError(f"{self.name} does not compile it again: {answer.reason}")
            remote.now_at(answer, self._generation)
        data = [array_to_json(dtype, bits) for dtype, bits in zip(remote.dtypes, inputs, strict=True)]
        return self._request("run", {"handle": remote.handle, "inputs": data})

    def _read_outputs(self, outputs: list[Any], remote: _Remote, inputs: Sequence[Array]) -> list[Array]:
        expected = remote.output_types
        if expected is None:
            types: list[tuple[str | None, tuple[int, ...] | None]] = [(None, None)]
        else:
            n = next((bits.shape for bits in inputs if bits.ndim), ())
            types = [(type_.dtype, n if type_.dims else ()) for type_ in expected]
        if len(outputs) != len(types):
            raise self._broken("run", f"{len(outputs)} outputs where the program has {len(types)}")
        arrays = []
        for position, (data, (dtype, shape)) in enumerate(zip(outputs, types, strict=True)):
            try:
                arrays.append(array_from_json(data, dtype, shape)[1])
            except WireError as error:
                raise self._broken("run", f"output {position} {error}") from error
        return arrays


class _Remote:
    """A program that was compiled at the other end of the pipe."""

    def __init__(
        self, adapter: PipeAdapter, program: Kernel | Source, options: dict[str, Any], handle: int, generation: int
    ) -> None:
        self._adapter = adapter
        self.program = program
        self.options = options
        self.failed = ""
        self.output_types: tuple[Type, ...] | None = None
        if isinstance(program, Kernel):
            self.dtypes = tuple(type_.dtype for type_ in program.input_types)
            self.output_types = program.output_types
        else:
            self.dtypes = tuple(parameter.dtype for parameter in program.parameters())
        self._finalizer: Any = None
        self.now_at(handle, generation)

    def now_at(self, handle: int, generation: int) -> None:
        """The program was compiled (again): where it is now."""
        if self._finalizer is not None:
            self._finalizer.detach()
        self.handle, self.generation = handle, generation
        self._finalizer = weakref.finalize(self, self._adapter._forget, generation, handle)
        self._finalizer.atexit = False

    def __call__(self, *inputs: Array) -> list[Array]:
        if self.failed:
            raise UnsupportedError(self.failed)
        return self._adapter._run(self, inputs)


def _timeout() -> float:
    text = os.environ.get("HALFULP_PIPE_TIMEOUT", "")
    if not text:
        return TIMEOUT
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise PipeError(f"HALFULP_PIPE_TIMEOUT is {text!r}, not a positive number of seconds")
    return seconds


def _excerpt(line: bytes) -> str:
    text = line.decode(errors="replace")
    return repr(text if len(text) <= 80 else text[:77] + "...")
