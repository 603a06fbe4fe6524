"""What a replay needs of a device, as a protocol, and the ways in which a device can say no.

The one real implementation is `cuda_backend.CudaBackend`; the tests have one in plain memory that runs Python
functions as kernels and can fail in every way that a device can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from foldproof.gpu.replay.abi import ParamPlace
from foldproof.gpu.replay.arena import Arena
from foldproof.gpu.replay.inputs import Bytes
from foldproof.impl.errors import FoldproofError


class NoDevice(FoldproofError):
    """There is no device, driver or binding to replay on; the command that needs one exits with 3."""

    code = "NoDevice"


class LoadRefusedError(Exception):
    """The driver does not load this code, or the device cannot hold it: the variant has no reference here."""


class DeviceFaultError(Exception):
    """The device stopped serving this process (a kernel faulted): nothing more can be asked of it here."""


class DeviceMemoryError(Exception):
    """An allocation does not fit the device."""


class DeviceFacts(msgspec.Struct, frozen=True):
    """The device and the software that drives it. Versions are None where nothing says them."""

    name: str
    compute_capability: tuple[int, int]
    memory_bytes: int
    shared_bytes: int
    multiprocessors: int
    driver: str | None
    cuda_driver: str | None
    compiler: str | None
    cuda_core: str | None
    cuda_bindings: str | None
    numpy: str
    python: str

    @property
    def arch(self) -> str:
        """The architecture as captures name it, such as `sm_90`."""
        return f"sm_{self.compute_capability[0]}{self.compute_capability[1]}"


@dataclass(frozen=True, slots=True)
class Code:
    """A loaded kernel: the backend's own handle, its parameters, and the bytes of shared memory it is launched with."""

    handle: Any
    places: tuple[ParamPlace, ...]
    shared: int


@dataclass(frozen=True, slots=True)
class Shape:
    """How a kernel is launched: programs, threads of one program, and CTAs of one cluster."""

    grid: tuple[int, int, int]
    threads: int
    ctas: int = 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two batches of slots to compare, region by region, into `found` (three u64 a slot and region, zeroed before).

    `fills` are the fill bytes of the two sides where a byte that neither side's kernel wrote is no difference.
    """

    left: int
    right: int
    slots: int
    found: int
    fills: tuple[int, int] | None = None


class Backend(Protocol):
    """A device. Addresses are ints; work runs in the order of the calls on one `lane`, on several in any order.

    Any call can raise DeviceFaultError.
    """

    def facts(self) -> DeviceFacts:
        """What the device and its software are."""

    def free_bytes(self) -> int:
        """Bytes of device memory that can still be allocated."""

    def load(self, cubin: bytes, entry: str, shared: int) -> Code:
        """Load a kernel. Raises LoadRefusedError."""

    def allocate(self, size: int) -> int:
        """The address of fresh device memory, a multiple of 1,024. Raises DeviceMemoryError."""

    def release(self, address: int) -> None:
        """Give allocated memory back."""

    def upload(self, address: int, data: Bytes) -> None:
        """Copy host bytes to the device; `data` can be changed when it returns."""

    def download(self, address: int, size: int) -> Bytes:
        """Copy bytes of the device to the host, after all work before it."""

    def copy(self, target: int, source: int, size: int, lane: int = 0) -> None:
        """Copy within the device."""

    def clear(self, address: int, size: int) -> None:
        """Zero device memory."""

    def prepare(self, arena: Arena) -> None:
        """Make an arena the one that `fill` and `compare` speak about."""

    def fill(self, base: int, slots: int, value: int) -> None:
        """Fill the poisoned regions of each slot with a byte."""

    def compare(self, job: Comparison) -> None:
        """Compare two batches."""

    def launch(self, code: Code, shape: Shape, args: Sequence[Any], lane: int = 0) -> None:
        """Run a kernel."""

    def sync(self) -> None:
        """Wait for all work of all lanes."""

    def begin_graph(self, lane: int) -> None:
        """From here on record the launches of the lane instead of running them."""

    def end_graph(self, lane: int) -> Any:
        """End the recording; what comes back can be given to `run_graph`."""

    def run_graph(self, graph: Any, lane: int) -> None:
        """Run the recorded launches."""

    def stopwatch(self) -> float:
        """A time in seconds on the device's own clock, after all work before it (for differences only)."""
