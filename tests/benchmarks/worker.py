"""One side of a race: a process that works when it is asked to, and sleeps while the others work.

    python worker.py '{"side": "gpflow", "function": "regression", "problem": "regression", "size": [1000, 5, 50], "options": {}}'

The function of the side works without end and calls `done(values)` after every unit of work. For each line on the standard
input a turn is taken: at least a tenth of a second of work, and at least one unit. It prints the seconds for one unit, the
megabytes above what the process held with its packages and data, and the values of the last unit.
"""

import importlib
import json
import sys
import time

import problems

TURN = 0.1  # seconds: right after a pause a fit of a few milliseconds takes half as long again, so short ones are averaged


class Turns:
    """What a side calls after every unit of work."""

    def __init__(self):
        self.held = memory("VmRSS")
        self.wait()

    def wait(self):
        """Sleep until a line asks for a turn; end the process when there are no more lines."""
        if not sys.stdin.readline():
            sys.exit()
        forget_peak()
        self.units, self.begun = 0, time.perf_counter()

    def __call__(self, values=None):
        self.units += 1
        spent = time.perf_counter() - self.begun
        if spent >= TURN:
            report = {"seconds": spent / self.units, "megabytes": memory("VmHWM") - self.held, "values": values}
            print(json.dumps(report), flush=True)
            self.wait()


def memory(name):
    """Megabytes that this process holds now ("VmRSS") or has held at most ("VmHWM"); NaN where Linux does not say."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith(name))
    except OSError:
        return float("nan")


def forget_peak():
    """Let the largest memory count from now on; without this, what the imports took would count."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def main():
    task = json.loads(sys.argv[1])
    side = importlib.import_module(f"sides.{task['side']}")
    data = getattr(problems, task["problem"])(*task["size"])
    getattr(side, task["function"])(*data, done=Turns(), **task["options"])


if __name__ == "__main__":
    main()
