"""A driver that is killed leaves no selector: the guard beside it ends them."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from foldproof.impl.external import channel, guard, guarding
from foldproof.impl.external.answers import SelectorError
from foldproof.impl.external.child import Child

SLEEPER = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)")
MARK = "FOLDPROOF_TEST_MARK"
DRIVER = """
import os, sys, time
from foldproof.impl.external.child import Child
child = Child((sys.executable, "-I", "-S", "-c", sys.argv[1]))
while not child.read():
    child.wait(1.0)
print(child.pid, flush=True)
if len(sys.argv) > 2:
    time.sleep(600)
"""
SELECTOR = "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.write(1, b'x')\n"
Alive = Callable[[int], bool]


@pytest.fixture
def marked_process() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(SLEEPER, env={MARK: "run.1"})
    yield process
    process.kill()
    process.wait()


def gone(pid: int, alive: Alive) -> bool:
    deadline = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


@pytest.mark.parametrize("last", ["time.sleep(600)", "os.kill(os.getpid(), signal.SIGSTOP)"])
def test_a_killed_driver_leaves_no_selector_running_nor_stopped(last: str, alive: Alive) -> None:
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, SELECTOR + last, "wait"], stdout=subprocess.PIPE)
    assert driver.stdout is not None
    pid = int(driver.stdout.readline())
    assert alive(pid)
    os.kill(driver.pid, signal.SIGKILL)
    driver.communicate()
    assert gone(pid, alive)


def test_a_driver_that_forgets_its_selector_leaves_none(alive: Alive) -> None:
    words = [sys.executable, "-W", "ignore", "-c", DRIVER, SELECTOR + "time.sleep(600)"]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    assert not alive(int(done.stdout))


@pytest.mark.parametrize("well", [True, False])
def test_the_guard_ends_what_is_marked_at_the_end_of_its_input(
    well: bool, marked_process: subprocess.Popen[bytes]
) -> None:
    words = [sys.executable, "-m", "foldproof.impl.external.guard", f"{MARK}=run."]
    began = time.monotonic()
    subprocess.run(words, input=b"." if well else b"", check=True)
    assert marked_process.wait(10) == -signal.SIGKILL
    assert well or time.monotonic() - began >= guard.AGAIN_S


def test_only_what_has_the_mark_is_ended(marked_process: subprocess.Popen[bytes]) -> None:
    guard.sweep(f"{MARK}=other.".encode())
    assert marked_process.poll() is None
    assert guard.marked(f"{MARK}=run.".encode()) == [marked_process.pid]
    guard.sweep(f"{MARK}=run.".encode())
    assert marked_process.wait(10) == -signal.SIGKILL
    guard.kill_all([marked_process.pid])  # which is no more


def test_a_guard_that_cannot_be_started_is_told_and_leaves_no_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> int:
        raise OSError(12, "cannot allocate memory")

    guarding.own_guard.cache_clear()
    monkeypatch.setattr(guarding.os, "posix_spawn", fail)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(SelectorError, match="cannot be started: cannot allocate memory"):
        Child(SLEEPER)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_copy_of_the_driver_has_no_part_in_its_guard(alive: Alive) -> None:
    """The copy closes its end of the guard's pipe, so that the guard need not wait for the copy's end."""
    run = guarding.fresh_token().split(".")[0]
    reading, writing = os.pipe()
    copy = os.fork()
    if not copy:
        own = guarding.own_guard
        os.write(writing, b"%d %d" % (own.cache_info().currsize, own().run != run))
        own().dismiss()
        os._exit(0)
    os.waitpid(copy, 0)
    said = os.read(reading, 100)
    for end in (reading, writing):
        os.close(end)
    assert said == b"0 1"
    assert alive(guarding.own_guard().pid)


def test_a_guard_is_dismissed_once_and_again(alive: Alive) -> None:
    guarding.own_guard.cache_clear()
    guarding.fresh_token()
    own = guarding.own_guard()
    assert alive(own.pid)
    own.dismiss()
    assert not alive(own.pid)
    own.dismiss()
    guarding.own_guard.cache_clear()


def test_the_guard_of_a_driver_that_is_itself_a_selector_bears_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the outer driver would end the guard before the inner selectors."""
    monkeypatch.setenv(guarding.TOKEN, "outer.1")
    guarding.own_guard.cache_clear()
    guarding.fresh_token()
    place, deadline = Path(f"/proc/{guarding.own_guard().pid}/environ"), time.monotonic() + 10
    while not (environ := place.read_bytes()) and time.monotonic() < deadline:
        time.sleep(0.01)  # a process has none while it starts
    assert guarding.TOKEN.encode() not in environ
    assert b"PATH=" in environ


def test_a_library_whose_memory_cannot_be_shared_is_unusable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr(channel.os, "ftruncate", fail)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(SelectorError, match="no memory can be shared with it: File too large"):
        channel.Channel(tmp_path / "libmine.so", 1.0, 1.0)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
