"""Workers that end with the process that started them.

A worker of a process pool holds both ends of its queue, so that it waits for its next task for ever once the process
that would send it was killed. The initializer here watches for that end.
"""

from __future__ import annotations

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """As `initializer` of a `ProcessPoolExecutor`: end this worker, whatever it is at, when its parent is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "runs in a worker"

    def watch() -> None:
        parent.join()
        os._exit(1)  # nobody waits for what is under way

    threading.Thread(target=watch, daemon=True).start()
