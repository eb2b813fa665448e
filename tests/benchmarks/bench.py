"""Time pepcore beside GPflow, GPy, GPyTorch and scikit-learn, in one run and in turns.

    python tests/benchmarks/bench.py                          everything, into results/bench.json
    python tests/benchmarks/bench.py --only probit learning   these groups anew, the others stay as they are
    python tests/benchmarks/bench.py --quick                  the first race of each group, one turn, nothing written

Each package works in a process of its own, with the interpreter that its setting names (see environments.py); a package
without one is left out. A process sees as many cores as it may use threads, and sleeps while another one works. After one
turn to warm up each takes seven; the median counts. Nothing here is a test.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cases import RACES
from environments import ENVIRONMENTS, ONE_THREAD, python_of

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "bench.json"
REST = 0.2  # seconds: a BLAS's idle threads spin for a while after a product, on the core of who comes next


class Worker:
    """A process that takes a turn when asked."""

    def __init__(self, entry, python, threads, cores):
        task = {key: getattr(entry, key) for key in ("side", "function", "problem", "size", "options")}
        limits = {name: str(threads) for name in ONE_THREAD}
        self.entry, self.turns, self.complaints = entry, [], tempfile.TemporaryFile("w+")  # noqa: SIM115 - see close
        self.process = subprocess.Popen(
            [python, HERE / "worker.py", json.dumps(task)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints, text=True,
            env={**os.environ, **limits, "PYTHONPATH": str(HERE.parent.parent), "CUDA_VISIBLE_DEVICES": ""},
            preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
        )

    def take_turn(self):
        try:
            self.process.stdin.write("again\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        if not line:
            self.complaints.seek(0)
            reason = (self.complaints.read().strip().splitlines() or ["it said nothing"])[-1]
            raise RuntimeError(f"{self.entry.side} ended early: {reason}")
        self.turns.append(json.loads(line))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.complaints.close()


def race(entries, pythons, threads, turns):
    """The workers, after a turn to warm up, which is dropped, and `turns` turns each."""
    workers = []
    try:
        for place, entry in enumerate(entries):
            workers.append(Worker(entry, pythons[entry.side], threads, cores_for(place, threads)))
        for _ in range(turns + 1):
            for worker in workers:
                time.sleep(REST if threads > 1 else 0.0)
                worker.take_turn()
    finally:
        for worker in workers:
            worker.close()
    for worker in workers:
        del worker.turns[0]
    return workers


def cores_for(place, threads):
    """Cores of the worker at this place: neighbours apart, so that none finds the other's data in its cache."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    cores = sorted(os.sched_getaffinity(0), reverse=True)
    return {cores[(place + i) % len(cores)] for i in range(threads)}


def rows_of(group, workers, threads, versions):
    """What a race found: a dict for each entry."""
    seconds = {worker: [turn["seconds"] for turn in worker.turns] for worker in workers}
    values = {worker: worker.turns[-1]["values"] for worker in workers}
    if workers[0].entry.function == "learn":
        seconds, values = times_to_evidence(workers)
    for worker in workers:
        entry = worker.entry
        yield {
            "group": group, "package": entry.side, "version": versions.get(entry.side), "method": entry.method,
            "size": entry.size, "threads": threads, "turns": len(worker.turns),
            "seconds": statistics.median(seconds[worker]), "least": min(seconds[worker]), "most": max(seconds[worker]),
            "megabytes": max(turn["megabytes"] for turn in worker.turns), "values": values[worker],
        }


def times_to_evidence(workers):
    """Seconds of each complete fit until it reached the evidence that all packages reach, less one nat.

    The values are the best log evidence of a package, that target, and the evaluations of its last fit.
    """
    best = {worker: min(max(value for _, value in turn["values"]) for turn in worker.turns) for worker in workers}
    target = min(best.values()) - 1.0
    seconds = {
        worker: [next(spent for spent, value in turn["values"] if value >= target) for turn in worker.turns]
        for worker in workers
    }
    return seconds, {worker: [best[worker], target, len(worker.turns[-1]["values"])] for worker in workers}


def machine():
    """The machine in words."""
    facts = {}
    for file in ("/proc/cpuinfo", "/proc/meminfo"):
        if Path(file).exists():
            lines = Path(file).read_text().splitlines()
            facts |= dict(map(str.strip, line.split(":", 1)) for line in reversed(lines) if ":" in line)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    words = [facts.get("model name", platform.processor()) or platform.machine(), f"{cores} cores"]
    if "MemTotal" in facts:
        words.append(f"{int(facts['MemTotal'].split()[0]) / 2**20:.0f} GB of memory")
    return ", ".join([*words, platform.system(), f"Python {platform.python_version()}"])


def present():
    """Interpreter and version of every package that can take part; those that cannot are named."""
    pythons, versions = {"floor": sys.executable}, {}
    for name, environment in ENVIRONMENTS.items():
        python = python_of(name)
        command = [python, "-c", f"from importlib.metadata import version; print(version({environment.package!r}))"]
        done = python and subprocess.run(command, capture_output=True, text=True, check=False)
        if done and done.returncode == 0:
            pythons[name], versions[name] = python, done.stdout.strip()
        else:
            print(f"{environment.package} is left out: install {environment.install} into an environment and set "
                  f"{environment.setting} to its interpreter")
    return pythons, versions


def run(races, turns, pythons, versions):
    """Rows of all races, race by race."""
    for each in races:
        entries = [entry for entry in each.entries if entry.side in pythons]
        for threads in each.threads:
            if entries and threads <= (os.cpu_count() or 1):
                try:
                    workers = race(entries, pythons, threads, min(turns, each.turns or turns))
                except RuntimeError as problem:
                    print(f"{each.group}: left out, {problem}", flush=True)
                    continue
                yield list(rows_of(each.group, workers, threads, versions))


def max_rows(entry):
    """The first number of a size, which is N where there is one."""
    return entry.size[0] if isinstance(entry.size[0], int) else 0


def show(row):
    name = f"{row['package']} {row['method']}"
    print(f"{row['group']:16} {'×'.join(map(str, row['size'])):>18} {row['threads']} thread(s)  {name:50}"
          f"{row['seconds']:10.4f} s {row['megabytes']:8.0f} MB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    groups = list(dict.fromkeys(each.group for each in RACES))
    parser.add_argument("--only", nargs="+", choices=groups, default=groups)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--largest", type=int, default=10**9, help="leave out what has more rows of data than this")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    races = [each for each in RACES if each.group in options.only]
    if options.quick:
        races = list({each.group: each for each in reversed(races) if each.group != "two million rows"}.values())[::-1]
    begun, load = time.perf_counter(), os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > 0.5:
        print(f"the machine is busy (load {load:.1f}): the times will say little")
    pythons, versions = present()
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": []}
    kept = [row for row in stored["rows"] if row["group"] not in options.only]
    if kept and stored["machine"] != machine():
        raise SystemExit(f"the other results are from another machine ({stored['machine']}); measure all groups")
    found, part = [], RESULTS.with_suffix(".json.part")     # of a run that was interrupted; git ignores it
    races = [each._replace(entries=[e for e in each.entries if max_rows(e) <= options.largest]) for each in races]
    for rows in run(races, 1 if options.quick else options.turns, pythons, versions):
        for row in rows:
            show(row)
        found += rows
        if not options.quick:
            result = {"machine": machine(), "load": load, "date": time.strftime("%Y-%m-%d"), "rows": kept + found}
            part.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if found and not options.quick:
        part.replace(RESULTS)
    print(f"{len(found)} rows in {(time.perf_counter() - begun) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
