"""Around the CUDA bindings: finding them, their names across releases, their errors, and the facts of a device."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

import numpy as np
from foldproof.gpu.replay.backend import DeviceFacts, DeviceFaultError, DeviceMemoryError, NoDevice


@contextmanager
def faults() -> Iterator[None]:
    """Any error of the driver inside is a fault of the device; errors of our own pass."""
    try:
        yield
    except (DeviceFaultError, DeviceMemoryError, NoDevice, AssertionError):
        raise
    except Exception as problem:
        raise DeviceFaultError(f"{type(problem).__name__}: {problem}") from problem


def bindings() -> tuple[Any, Any]:
    """cuda.core (its experimental name before 0.5) and the driver bindings. Raises NoDevice where either is missing."""
    try:
        from cuda import core  # noqa: PLC0415 -- importing this module must load no CUDA library
        from cuda.bindings import driver  # noqa: PLC0415 -- as above

        if not hasattr(core, "Device"):
            from cuda.core import experimental as core  # noqa: PLC0415 -- as above
    except Exception as problem:  # noqa: BLE001 -- a broken installation raises what it likes
        why = f"cuda.core cannot be imported: {problem}"
        raise NoDevice(why, fix="install cuda-python 13 on a machine with a CUDA device") from None
    return core, driver


def timing(core: Any) -> Any:
    """Options of an event that takes the time; their name differs by release."""
    try:
        return core.EventOptions(timing_enabled=True)
    except TypeError:
        return core.EventOptions(enable_timing=True)


def version(distribution: str) -> str | None:
    """The version of an installed distribution, None where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def kernel_driver(core: Any) -> str | None:
    """The version of the kernel-mode driver as NVIDIA writes it, such as 580.159.04; None where nothing says it."""
    try:
        major, minor, *rest = core.system.get_kernel_mode_driver_version()
        return ".".join([str(major), str(minor), *(f"{part:02}" for part in rest)])
    except Exception:  # noqa: BLE001 -- the name differs by release and NVML may be absent; the version is a courtesy
        return None


def checked(result: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a driver call gives besides its status. Raises DeviceFaultError where that is an error."""
    if int(result[0]) != 0:
        raise DeviceFaultError(f"{getattr(result[0], 'name', result[0])}")
    return result[1:]


def arch_of(device: Any) -> str:
    """The architecture of a device, such as `sm_90`."""
    major, minor = device.compute_capability
    return f"sm_{major}{minor}"


def shared_limit(device: Any) -> int:
    """Bytes of shared memory that one block can have."""
    return int(device.properties.max_shared_memory_per_block_optin)


def read_facts(core: Any, driver: Any, device: Any, compiler: str) -> DeviceFacts:
    """What the device and its software are."""
    total = checked(driver.cuMemGetInfo())[1]
    number = checked(driver.cuDriverGetVersion())[0]
    major, minor = device.compute_capability
    return DeviceFacts(
        name=str(device.name),
        compute_capability=(int(major), int(minor)),
        memory_bytes=int(total),
        shared_bytes=shared_limit(device),
        multiprocessors=int(device.properties.multiprocessor_count),
        driver=kernel_driver(core),
        cuda_driver=f"{number // 1000}.{number % 1000 // 10}",
        compiler=compiler,
        cuda_core=version("cuda-core"),
        cuda_bindings=version("cuda-bindings"),
        numpy=np.__version__,
        python=platform.python_version(),
    )
