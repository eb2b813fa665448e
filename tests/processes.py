"""What is left of a group of processes that was ended."""

import os
import time

import psutil

SECONDS_TO_END = 60     # a worker ends within five; a busy machine may take longer to let it


def processes_of(group):
    """The commands of the processes of a group that have not ended."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
        except (psutil.Error, OSError):         # it has just ended, or is not ours
            continue
    return found


def left_of(group):
    """Wait for the processes of a group to end; the commands of those that have not after SECONDS_TO_END."""
    deadline = time.monotonic() + SECONDS_TO_END
    while (left := processes_of(group)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
