"""Compute the results behind the book's figures.

python -m figures list           the studies and how far each has come
python -m figures run ID         compute the runs of a study that are missing
python -m figures status ID      how many runs are done, which are missing, which failed
python -m figures draw ID        draw a study's figures into image files
python -m figures claims         the papers' claims, our numbers and the verdicts
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from figures.experiments import claims, executors, runner, tables

DRAWINGS = Path("_build/figures")


def main(arguments=None):
    options = parser().parse_args(arguments)
    try:
        return options.command(options)
    except (ValueError, OSError, RuntimeError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; what was finished is kept, and the same command continues", file=sys.stderr)
        return 130


def parser():
    result = argparse.ArgumentParser(prog="python -m figures", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = result.add_subparsers(required=True, metavar="COMMAND")

    def command(name, function, what):
        added = commands.add_parser(name, help=what, description=what)
        added.set_defaults(command=function)
        return added

    command("list", list_studies, "the studies and how far each has come")
    run = command("run", run_study, "compute the runs that are missing")
    run.add_argument("id", metavar="ID")
    where = run.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=_whole, metavar="N", help="processes at a time; default: one per core")
    where.add_argument("--scheduler", metavar="ADDRESS",
                       help="a Dask scheduler, whose workers compute, such as tcp://10.0.0.1:8786")
    run.add_argument("--splits", type=_whole, metavar="N", help="only the first N splits")
    run.add_argument("--budget-minutes", type=_minutes, metavar="T", help="start no more runs after T minutes")
    run.add_argument("--retry", action="store_true", help="compute failed runs again")
    status = command("status", show_status, "how many runs are done, which are missing, which failed")
    status.add_argument("id", metavar="ID")
    draw = command("draw", draw_study, "draw a study's figures into image files")
    draw.add_argument("id", metavar="ID")
    draw.add_argument("--figure", metavar="NAME", help="only this one of the study's figures")
    draw.add_argument("--output", type=Path, metavar="FILE", help="image file, .png, .svg or .pdf; several figures get their "
                      f"names added; default: {DRAWINGS}/ID-NAME.png")
    draw.add_argument("--force", action="store_true", help="replace the file that --output names if it is there")
    ledger = command("claims", show_claims, "the papers' claims, our numbers and the verdicts")
    ledger.add_argument("--update", action="store_true", help="measure all claims and write what came out into claims.toml")
    ledger.add_argument("--paper", metavar="KEY", help="only claims of this paper, such as bui2017")
    ledger.add_argument("--verdict", choices=claims.VERDICTS, help="only claims with this verdict")
    return result


def _whole(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return number


def _minutes(text):
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"must be a positive number of minutes, got {text}")
    return number


def list_studies(options):
    for study_id in runner.studies():
        study = runner.load(study_id)
        print(f"{study_id:18} {progress_of(study):>24}   {study.title}")
    return 0


def run_study(options):
    study = runner.load(options.id)
    execute = executors.on_dask(options.scheduler) if options.scheduler else executors.on_this_machine(options.jobs)
    computed, failures = runner.run(study, splits=options.splits, retry=options.retry, execute=execute,
                                    budget_minutes=options.budget_minutes)
    print(f"{study.id}: computed {computed} runs, {failures} of them failed; {progress_of(study)} in {study.file}")
    return 1 if failures else 0


def show_status(options):
    study = runner.load(options.id)
    rows, missing = runner.read_rows(study), tables.missing_runs(study)
    seconds = sum(float(row["seconds"]) for row in rows)
    print(f"{study.id}: {study.title}\n{progress_of(study)}; {seconds:.0f} s of work")
    if owner := tables.owner_of(study):
        print(f"being run by {owner}")
    if missing:
        first = study.inputs[0]
        counts = Counter(run[first] for run in missing)
        print(f"missing, by {first}: " + ", ".join(f"{value}: {count}" for value, count in counts.items()))
        print(f"why: {getattr(study.module, 'UNFINISHED', 'nobody has said')}")
    for row in rows:
        if row["error"]:
            inputs = ", ".join(f"{name} = {row[name]}" for name in study.inputs)
            print(f"failed: {inputs}: {row['error']}")
    return 0


def draw_study(options):
    from figures.experiments import images  # matplotlib, which the other commands can do without

    study = runner.load(options.id)
    output = options.output or DRAWINGS / f"{study.id}.png"
    for path in images.draw(study, output, figure=options.figure, force=options.force or options.output is None):
        print(path)
    return 0


def show_claims(options):
    if options.update:
        changed = claims.update()
        print(f"{len(changed)} claims changed: {', '.join(changed)}" if changed else "nothing changed")
        return 0
    for claim in claims.ledger():
        if options.paper in (None, claim.paper) and options.verdict in (None, claim.verdict):
            print(f"{claim.verdict:18} {claim.id}: {claim.statement}\n{'':18} paper: {claim.claimed}; ours: {claim.found}")
    return 0


def progress_of(study):
    rows = runner.read_rows(study)
    failed = sum(bool(row["error"]) for row in rows)
    return f"{len(rows)} of {len(study.runs())} runs done" + (f", {failed} failed" if failed else "")


if __name__ == "__main__":
    sys.exit(main())
