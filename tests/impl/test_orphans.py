"""A worker of a pool ends when the process that made the pool is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SCRIPT = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from foldproof.impl.orphans import end_with_parent

if __name__ == "__main__":
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=end_with_parent)
    print(pool.submit(os.getpid).result(), flush=True)
    if len(sys.argv) > 1:
        pool.submit(time.sleep, 600)
    time.sleep(600)
"""


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_worker_ends_with_its_parent_idle_or_at_work(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    for more in ([], ["busy"]):
        parent = subprocess.Popen([sys.executable, script, *more], stdout=subprocess.PIPE)
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert runs(worker)
        os.kill(parent.pid, signal.SIGKILL)
        parent.communicate()
        deadline = time.monotonic() + 20
        while runs(worker) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not runs(worker)
