"""The backend on a CUDA device, through cuda.core. Importing this module loads no driver; opening the backend does.

cuda.core is used wherever it has the call; the few driver calls below name what cuda.core lacks. Releases before 1.0
differ in a few names; `cuda_calls` knows them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from foldproof.gpu.replay import device_code
from foldproof.gpu.replay.arena import ALIGNMENT, POISONED, Arena
from foldproof.gpu.replay.backend import (
    Code,
    Comparison,
    DeviceFacts,
    DeviceFaultError,
    DeviceMemoryError,
    LoadRefusedError,
    NoDevice,
    Shape,
)
from foldproof.gpu.replay.compiling import compiled
from foldproof.gpu.replay.cuda_calls import arch_of, bindings, checked, faults, read_facts, shared_limit, timing
from foldproof.gpu.replay.inputs import Bytes

PLAIN_SHARED = 48 * 1024
"""Bytes of dynamic shared memory that a kernel has without asking."""
STAGING = 32 << 20
"""Bytes of pinned host memory that every copy between host and device goes through."""


class CudaBackend:
    """One CUDA device. Raises NoDevice where there is none that can be driven."""

    def __init__(self, ordinal: int = 0, lanes: int = 1) -> None:
        self._core, self._driver = bindings()
        try:
            self._device = self._core.Device(ordinal)
            self._device.set_current()
            self._lanes = [self._device.create_stream() for _ in range(lanes)]
        except Exception as problem:  # noqa: BLE001 -- the bindings raise many kinds where a driver is missing or old
            raise NoDevice(f"no CUDA device can be used: {problem}", fix="run it where nvidia-smi lists one") from None
        self._recording: dict[int, Any] = {}
        self._held: dict[int, Any] = {}
        self._configs: dict[tuple[Shape, int], Any] = {}
        self._arena: Arena | None = None
        self._tables: tuple[int, ...] = ()
        self._clock: Any = None
        self._facts: DeviceFacts | None = None
        self.compiler = ""
        with faults():
            self._pinned = self._core.LegacyPinnedMemoryResource().allocate(STAGING)
            self._host = np.ctypeslib.as_array((ctypes.c_uint8 * STAGING).from_address(int(self._pinned.handle)))
            self.compiler, cubin = compiled(self._core, device_code.SOURCE, arch_of(self._device))
            own = self._core.ObjectCode.from_cubin(cubin)
            self._fill, self._compare = own.get_kernel(device_code.FILL), own.get_kernel(device_code.COMPARE)

    def facts(self) -> DeviceFacts:
        """What the device and its software are."""
        if self._facts is None:
            self._facts = read_facts(self._core, self._driver, self._device, self.compiler)
        return self._facts

    def free_bytes(self) -> int:
        """Bytes of device memory that can still be allocated."""
        return int(checked(self._driver.cuMemGetInfo())[0])

    def load(self, cubin: bytes, entry: str, shared: int) -> Code:
        """Load a kernel and let it have its shared memory. Raises LoadRefusedError with the driver's reason."""
        limit = shared_limit(self._device)
        if shared > limit:
            raise LoadRefusedError(f"needs {shared} bytes of shared memory; the device has {limit} a block")
        try:
            kernel = self._core.ObjectCode.from_cubin(cubin).get_kernel(entry)
            places = tuple((int(info[0]), int(info[1])) for info in kernel.arguments_info)
            if shared > PLAIN_SHARED:
                self._allow_shared(kernel, shared)
        except Exception as problem:  # noqa: BLE001 -- the driver's refusal, whatever class this release gives it
            raise LoadRefusedError(f"the driver refuses it: {problem}") from None
        return Code(kernel, places, shared)

    def _allow_shared(self, kernel: Any, shared: int) -> None:
        # cuda.core only reads this attribute.
        attribute = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        handle = getattr(kernel, "handle", None) or kernel._handle  # noqa: SLF001 -- its name before 1.0
        device = checked(self._driver.cuDeviceGet(self._device.device_id))[0]
        checked(self._driver.cuKernelSetAttribute(attribute, shared, handle, device))

    def allocate(self, size: int) -> int:
        """The address of fresh device memory, a multiple of 1,024. Raises DeviceMemoryError."""
        try:
            buffer = self._device.allocate(size + ALIGNMENT, stream=self._lanes[0])
            self._lanes[0].sync()
        except Exception as problem:  # noqa: BLE001 -- out of memory has no class of its own in cuda.core
            if "OUT_OF_MEMORY" in str(problem):
                raise DeviceMemoryError(f"{size} bytes: {problem}") from None
            raise DeviceFaultError(str(problem)) from None
        address = -(-int(buffer.handle) // ALIGNMENT) * ALIGNMENT
        self._held[address] = buffer
        return address

    def release(self, address: int) -> None:
        """Give allocated memory back."""
        with faults():
            self.sync()
            self._held.pop(address).close()

    def upload(self, address: int, data: Bytes) -> None:
        """Copy host bytes to the device through pinned memory."""
        flat = data.reshape(-1)
        with faults():
            for start in range(0, flat.size, STAGING):
                part = flat[start : start + STAGING]
                self._host[: part.size] = part
                self._move(address + start, int(self._pinned.handle), part.size)
                self._lanes[0].sync()

    def download(self, address: int, size: int) -> Bytes:
        """Copy bytes of the device to the host, after all work before it."""
        out = np.empty(size, np.uint8)
        with faults():
            for start in range(0, size, STAGING):
                part = min(STAGING, size - start)
                self._move(int(self._pinned.handle), address + start, part)
                self._lanes[0].sync()
                out[start : start + part] = self._host[:part]
        return out

    def copy(self, target: int, source: int, size: int, lane: int = 0) -> None:
        """Copy within the device."""
        with faults():
            self._move(target, source, size, lane)

    def _move(self, target: int, source: int, size: int, lane: int = 0) -> None:
        view = self._core.Buffer.from_handle
        view(source, size).copy_to(view(target, size), stream=self._stream(lane))

    def clear(self, address: int, size: int) -> None:
        """Zero device memory."""
        with faults():
            # cuda.core's fill wants a buffer that it allocated in some releases.
            stream = self._lanes[0].handle
            checked(self._driver.cuMemsetD8Async(address, 0, size, stream))

    def prepare(self, arena: Arena) -> None:
        """Put the region tables of an arena on the device."""
        if arena is self._arena:
            return
        for address in self._tables:
            self.release(address)
        regions = np.array([(r.begin, r.end) for r in arena.regions], np.uint64)
        spans = np.array([(r.begin, r.end) for r in arena.regions if r.kind in POISONED], np.uint64)
        places = []
        for table in (regions, spans):
            places.append(self.allocate(table.nbytes))
            self.upload(places[-1], table.view(np.uint8))
        self._arena, self._tables = arena, tuple(places)

    def fill(self, base: int, slots: int, value: int) -> None:
        """Fill the poisoned regions of each slot with a byte."""
        arena = self._prepared()
        poisoned = sum(r.kind in POISONED for r in arena.regions)
        with faults():
            config = self._config(Shape((poisoned, slots, 1), device_code.THREADS), 0)
            args = (base, ctypes.c_uint64(arena.stride), self._tables[1], ctypes.c_int32(value))
            self._core.launch(self._lanes[0], config, self._fill, *args)

    def compare(self, job: Comparison) -> None:
        """Compare two batches."""
        arena = self._prepared()
        chunks = arena.stride * job.slots // device_code.CHUNK
        blocks = -(-chunks // (device_code.THREADS * device_code.UNROLL))
        blocks = min(blocks, int(self._device.properties.multiprocessor_count) * 24)
        fills = -1 if job.fills is None else job.fills[0] | job.fills[1] << 8
        with faults():
            config = self._config(Shape((blocks, 1, 1), device_code.THREADS), 0)
            sizes = (ctypes.c_uint64(chunks), ctypes.c_uint64(arena.stride // device_code.CHUNK))
            table = (self._tables[0], ctypes.c_int32(len(arena.regions)))
            args = (job.left, job.right, *sizes, *table, job.found, ctypes.c_int32(fills))
            self._core.launch(self._lanes[0], config, self._compare, *args)

    def _prepared(self) -> Arena:
        if self._arena is None:
            raise AssertionError("no arena is prepared")
        return self._arena

    def launch(self, code: Code, shape: Shape, args: Sequence[Any], lane: int = 0) -> None:
        """Run a kernel."""
        # The hot path of a replay: no context manager, which would cost a third of the launch itself.
        try:
            self._core.launch(self._stream(lane), self._config(shape, code.shared), code.handle, *args)
        except Exception as problem:  # as in faults
            raise DeviceFaultError(f"{type(problem).__name__}: {problem}") from problem

    def _config(self, shape: Shape, shared: int) -> Any:
        key = (shape, shared)
        if key not in self._configs:
            more = {"cluster": (shape.ctas, 1, 1)} if shape.ctas > 1 else {}
            block = (shape.threads, 1, 1)
            self._configs[key] = self._core.LaunchConfig(grid=shape.grid, block=block, shmem_size=shared, **more)
        return self._configs[key]

    def _stream(self, lane: int) -> Any:
        return self._recording.get(lane, self._lanes[lane])

    def sync(self) -> None:
        """Wait for all work of all lanes."""
        with faults():
            for lane in self._lanes:
                lane.sync()

    def begin_graph(self, lane: int) -> None:
        """Record the launches of the lane from here on."""
        with faults():
            builder = self._lanes[lane].create_graph_builder()
            builder.begin_building()
            self._recording[lane] = builder

    def end_graph(self, lane: int) -> Any:
        """End the recording."""
        with faults():
            builder = self._recording.pop(lane)
            return builder.end_building().complete()

    def run_graph(self, graph: Any, lane: int) -> None:
        """Run the recorded launches."""
        with faults():
            graph.launch(self._lanes[lane])

    def stopwatch(self) -> float:
        """Seconds on the device's clock since the first call."""
        with faults():
            event = self._device.create_event(options=timing(self._core))
            self._lanes[0].record(event)
            event.sync()
            if self._clock is None:
                self._clock = event
            return float(event - self._clock) / 1e3 if event is not self._clock else 0.0
