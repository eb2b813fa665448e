"""Where runs are computed: in processes of this machine, or on a Dask cluster.

An executor is a function (f, items) -> iterable of f(item), in any order, each as soon as it is ready. It takes an item
only when it starts to work on it, so that whoever gives the items can stop the work by giving no more.
"""

import importlib
import os
import threading
import time
from concurrent.futures.process import BrokenProcessPool

from joblib import Parallel, cpu_count, delayed, parallel_config

SECONDS_TO_CONNECT = 30
SECONDS_TO_NOTICE = 0.5     # that the process which started a worker was killed


def on_this_machine(jobs=None):
    """An executor with `jobs` parallel processes; as many as there are cores if not given."""
    def execute(function, items):
        with parallel_config("loky", initializer=end_with, initargs=(os.getpid(),)):
            parallel = Parallel(n_jobs=jobs or cpu_count(), return_as="generator_unordered", pre_dispatch="n_jobs",
                                batch_size=1)
        try:
            yield from parallel(delayed(function)(item) for item in items)
        except BrokenProcessPool as problem:
            raise RuntimeError("a worker process was killed, perhaps because memory ran out; what was finished is kept, "
                               "and the same command with fewer --jobs continues") from problem
    return execute


def end_with(parent):
    """Let this worker end itself when the process that started it, number `parent`, is gone."""
    threading.Thread(target=_wait_and_end, args=[parent], daemon=True).start()


def _wait_and_end(parent):
    """Wait until the process with the number `parent` is no longer the one that this process belongs to, then end."""
    while os.getppid() == parent:
        time.sleep(SECONDS_TO_NOTICE)
    os._exit(1)


def on_dask(address):
    """An executor on the workers of the Dask scheduler at `address`, for example tcp://10.0.0.1:8786.

    If a worker dies, Dask computes its runs on another one. A run whose workers die again and again counts as failed.

    Raises
    ------
    ValueError
        When the executor is used: if the package `distributed` is missing, nobody answers at the address, there is no
        worker, a worker has several threads, or it cannot import the study.
    ConnectionError
        If the scheduler goes away before all runs are finished.
    """
    def execute(function, items):
        distributed = _import_distributed()
        client = _connect(distributed, address, function.module)
        with client:
            items, under_way = iter(items), {}
            finished = distributed.as_completed()

            def start():
                workers = max(1, len(client.nthreads()))     # where none is left for the moment, one run waits for the next
                for _, item in zip(range(workers - len(under_way)), items):
                    future = client.submit(function, item, pure=False)
                    under_way[future.key] = item
                    finished.add(future)

            start()
            for future in finished:
                item = under_way.pop(future.key)
                if future.status == "finished":
                    yield future.result()
                elif future.status == "error":
                    yield function.failed(item, future.exception())
                else:
                    raise ConnectionError(f"the scheduler at {address} went away; what was finished is kept, and the "
                                          "same command continues")
                start()
    return execute


def _import_distributed():
    try:
        return importlib.import_module("distributed")       # optional, and slow to load: only those who ask for it
    except ImportError:
        raise ValueError("--scheduler needs the package distributed; install it with: pip install distributed") from None


def _connect(distributed, address, module):
    """A client of the scheduler, after a look at the workers."""
    try:
        client = distributed.Client(address, timeout=SECONDS_TO_CONNECT)
    except (OSError, ValueError) as problem:     # a time-out is an OSError
        raise _no_workers(address, problem) from None
    try:
        _look_at_workers(client, address, module)
    except BaseException:
        client.close()
        raise
    return client


def _look_at_workers(client, address, module):
    """Raise ValueError if there is no worker, or one that cannot compute the study in that module."""
    try:
        client.wait_for_workers(1, timeout=SECONDS_TO_CONNECT)
    except OSError as problem:
        raise _no_workers(address, problem) from None
    many = {worker: threads for worker, threads in client.nthreads().items() if threads > 1}
    if many:
        raise ValueError(f"these workers have more than one thread: {many}; start them with --nthreads 1, and "
                         "--nworkers as many as there are cores")
    lacking = [worker for worker, problem in client.run(_import_problem, module, on_error="return").items() if problem]
    if lacking:
        raise ValueError(f"these workers cannot import {module}: {', '.join(lacking)}; start them in the folder of this "
                         "repository, in an environment made from its requirements.txt")


def _no_workers(address, problem):
    """The error for an address at which no scheduler with a worker answers."""
    return ValueError(f"no Dask scheduler with a worker was found at {address!r} within {SECONDS_TO_CONNECT} s; start "
                      f"`dask scheduler` and `dask worker ADDRESS --nthreads 1` first ({problem})")


def _import_problem(module):
    try:
        importlib.import_module(module)
    except ImportError as problem:
        return str(problem)
    return ""
