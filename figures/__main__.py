"""Compute the results behind the book's figures.

python -m figures list           the studies and how far each has come
python -m figures run ID         compute the runs of a study that are missing
python -m figures status ID      how many runs are done, which failed
"""

import argparse
import sys

from figures import runner


def main(arguments=None):
    options = parser().parse_args(arguments)
    try:
        return options.command(options)
    except ValueError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; what was finished is kept, and the same command continues", file=sys.stderr)
        return 130


def parser():
    result = argparse.ArgumentParser(prog="python -m figures", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = result.add_subparsers(required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="the studies and how far each has come")
    listing.set_defaults(command=list_studies)
    run = commands.add_parser("run", help="compute the runs that are missing")
    run.add_argument("id", metavar="ID")
    run.add_argument("--jobs", type=int, metavar="N", help="processes at a time; default: one per core")
    run.add_argument("--splits", type=int, metavar="N", help="only the first N splits")
    run.add_argument("--retry", action="store_true", help="compute failed runs again")
    run.set_defaults(command=run_study)
    status = commands.add_parser("status", help="how many runs are done, which failed")
    status.add_argument("id", metavar="ID")
    status.set_defaults(command=show_status)
    return result


def list_studies(options):
    for study_id in runner.studies():
        study = runner.load(study_id)
        print(f"{study_id:16} {progress_of(study):>24}   {study.title}")
    return 0


def run_study(options):
    study = runner.load(options.id)
    computed, failures = runner.run(study, jobs=options.jobs, splits=options.splits, retry=options.retry)
    print(f"{study.id}: computed {computed} runs, {failures} of them failed; {progress_of(study)} in {study.file}")
    return 1 if failures else 0


def show_status(options):
    study = runner.load(options.id)
    rows = runner.read_rows(study)
    seconds = sum(float(row["seconds"]) for row in rows)
    print(f"{study.id}: {study.title}\n{progress_of(study)}; {seconds:.0f} s of work")
    for row in rows:
        if row["error"]:
            inputs = ", ".join(f"{name} = {row[name]}" for name in study.inputs)
            print(f"failed: {inputs}: {row['error']}")
    return 0


def progress_of(study):
    rows = runner.read_rows(study)
    failed = sum(bool(row["error"]) for row in rows)
    return f"{len(rows)} of {len(study.runs())} runs done" + (f", {failed} failed" if failed else "")


if __name__ == "__main__":
    sys.exit(main())
