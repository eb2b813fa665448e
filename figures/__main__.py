"""Compute the results behind the book's figures.

python -m figures list           the studies and what each is about
python -m figures status [ID]    of all studies or one: what is done, missing, stale, damaged, and the hours left
python -m figures run ID         compute the runs of a study that are missing; --all: of all studies
python -m figures verify ID      compute some runs again and compare them with what is kept
python -m figures mend ID        set damaged lines of a table aside and seal the rest anew, also after a merge
python -m figures draw ID        draw a study's figures into image files
python -m figures claims         the papers' claims, our numbers and the verdicts
python -m figures rules          when the rules of the claims were written and changed
"""

import argparse
import io
import math
import os
import sys
import time
from pathlib import Path

from figures.experiments import claims, executors, rules, runner, states, tables, verification

DRAWINGS = Path("_build/figures")
PROBLEMS = (ValueError, OSError, RuntimeError)
EXIT_CODES = ("Exit codes: 0 done; 1 runs failed, or did not come out again by the same code on the same machine; 2 an error, "
              "such as wrong use or a damaged table; 130 interrupted; 141 whoever read the output has stopped.")
COLUMNS = ("Stale: computed by other code or on other data than the present. Undated: from before rows said which code computed "
           "them. Corrupt: lines that are not as they were written. A question mark after the hours: a guess, since no run has "
           "finished; alone: the table cannot be read.")


def main(arguments=None):
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")        # a terminal that has no Greek letters still shows the rest
    options = parser().parse_args(arguments)
    try:
        status = options.command(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:         # whoever reads, such as `head`, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except PROBLEMS as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; what was finished is kept, and the same command continues", file=sys.stderr)
        return 130


def parser():
    result = argparse.ArgumentParser(prog="python -m figures", description=__doc__.partition("\n")[0], epilog=EXIT_CODES)
    commands = result.add_subparsers(required=True, metavar="COMMAND")

    def command(name, function, what, more=""):
        added = commands.add_parser(name, help=what, description=what, epilog=f"{more} {EXIT_CODES}")
        added.set_defaults(command=function)
        return added

    command("list", list_studies, "the studies and what each is about")
    run = command("run", run_studies, "compute the runs that are missing")
    which = run.add_mutually_exclusive_group(required=True)
    which.add_argument("id", metavar="ID", nargs="?")
    which.add_argument("--all", action="store_true", help="all studies, those with the fewest hours left first")
    _where(run)
    run.add_argument("--splits", type=_whole, metavar="N", help="only the first N splits")
    run.add_argument("--budget-minutes", type=_minutes, metavar="T", help="start no more runs after T minutes")
    run.add_argument("--retry", action="store_true", help="compute failed runs again")
    run.add_argument("--stale", action="store_true", help="compute again the runs that other code or other data gave, or "
                     "that do not say which code did; each old row stays until the new one is there")
    status = command("status", show_status, "what is done, missing, stale, damaged, and the hours left", COLUMNS)
    status.add_argument("id", metavar="ID", nargs="?")
    verify = command("verify", verify_study, "compute some runs again and compare them with what is kept")
    verify.add_argument("id", metavar="ID")
    verify.add_argument("--sample", type=_whole, metavar="N", default=5, help="how many runs, chosen at random; default: 5")
    verify.add_argument("--seed", type=int, metavar="S", default=0, help="for the choice; default: 0")
    verify.add_argument("--keep", action="store_true", help=f"write what was found into {verification.FILE.name}")
    _where(verify)
    mend = command("mend", mend_table, "set damaged lines of a table aside and seal the rest anew, also after a merge")
    mend.add_argument("id", metavar="ID")
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
    changelog = command("rules", show_rules, "when the rules of the claims were written and changed")
    changelog.add_argument("--update", action="store_true", help="write the changelog anew from the history of the repository")
    return result


def _where(command):
    where = command.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=_whole, metavar="N", help="processes at a time; default: one per core")
    where.add_argument("--scheduler", metavar="ADDRESS",
                       help="a Dask scheduler, whose workers compute, such as tcp://10.0.0.1:8786")


def _whole(text):
    number = _number(int, text, "a whole number")
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return number


def _minutes(text):
    number = _number(float, text, "a number of minutes")
    if not number > 0:
        raise argparse.ArgumentTypeError(f"must be a positive number of minutes, got {text}")
    return number


def _number(kind, text, what):
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be {what}, got {text!r}") from None


def list_studies(options):
    for study_id in runner.studies():
        print(f"{study_id:22} {runner.load(study_id).title}")
    return 0


def run_studies(options):
    if not options.all:
        return run_study(runner.load(options.id), options, options.budget_minutes)
    if options.splits:
        raise ValueError("--splits is for one study; leave it out, or name the study in place of --all")
    end = time.monotonic() + 60 * (options.budget_minutes or math.inf)
    order, status = sorted(map(runner.load, runner.studies()), key=lambda study: states.state_of(study).hours_left), 0
    for study in order:
        left = (end - time.monotonic()) / 60
        if left <= 0:
            print("the time is up; the other studies were not started")
            break
        try:
            status = max(status, run_study(study, options, None if math.isinf(left) else left))
        except PROBLEMS as problem:     # the other studies can do without this one
            print(f"error: {study.id}: {problem}", file=sys.stderr)
            status = 2
    return status


def run_study(study, options, minutes):
    computed, failures = runner.run(study, splits=options.splits, retry=options.retry, stale=options.stale,
                                    execute=executor(options), budget_minutes=minutes)
    print(f"{study.id}: computed {computed} runs, {failures} of them failed; {progress_of(study)} in {study.file}")
    if failures:
        print("an old row of a run that failed this time is kept; the others are computed again with "
              f"`python -m figures run {study.id} --retry`", file=sys.stderr)
    return 1 if failures else 0


def executor(options):
    return executors.on_dask(options.scheduler) if options.scheduler else executors.on_this_machine(options.jobs)


def show_status(options):
    chosen = [states.state_of(runner.load(study_id)) for study_id in ([options.id] if options.id else runner.studies())]
    if options.id:
        print(f"{options.id}: {chosen[0].study.title}\n{progress_of(chosen[0].study, chosen[0])}")
    print(states.in_columns([states.HEADINGS, *(state.cells for state in chosen)]))
    for state in chosen:
        for line in state.details() if options.id else filter(None, [state.complaint]):
            print(line)
    if not options.id:
        print(f"{sum(state.hours for state in chosen):.0f} hours with one thread done, "
              f"{sum(state.hours_left for state in chosen):.0f} left; `run --all --stale` would repeat "
              f"{sum(state.hours_stale for state in chosen):.0f}")
    return 2 if any(state.corrupt for state in chosen) else 0


def verify_study(options):
    study, found = runner.load(options.id), []
    if options.keep:
        verification.kept()     # a file that cannot be read is found out now, not after the first hour
    for one in verification.verify(study, options.sample, options.seed, executor(options)):
        found.append(one)
        finished = [one for one in found if not one.error]
        if options.keep and not one.error:
            verification.keep(study, finished)
        print(one, flush=True)
    rated = [one for one in finished if one.rated]
    rates = f"{sum(one.rates_equal for one in rated)} of {len(rated)} with equal error rates; " if rated else ""
    failed = f"; {len(found) - len(finished)} failed" if len(found) > len(finished) else ""
    print(f"{study.id}: {len(found)} runs computed again, {sum(one.equal for one in finished)} equal to the last digit; {rates}"
          f"largest relative difference {max((one.largest for one in finished), default=0.0):.1e}{failed}")
    other = any(one.compared and one.same_code and one.same_machine and not one.equal for one in finished)
    return 1 if failed or other else 0


def mend_table(options):
    study = runner.load(options.id)
    aside, number = tables.mend(study)
    where = f"{number} lines set aside in {aside}" if number else "no line had to be set aside"
    print(f"{study.id}: {where}; what is there is sealed: {progress_of(study)}")
    return 0


def draw_study(options):
    from figures.experiments import images  # matplotlib, which the other commands can do without

    study = runner.load(options.id)
    output = options.output or DRAWINGS / f"{'-'.join(filter(None, [study.id, options.figure]))}.png"
    for path in images.draw(study, output, figure=options.figure, force=options.force or options.output is None):
        print(path)
    return 0


def show_claims(options):
    if options.update and (options.paper or options.verdict):
        raise ValueError("--update measures all claims; leave out --paper and --verdict")
    if options.update:
        changed = claims.update()
        print(f"{len(changed)} claims changed: {', '.join(changed)}" if changed else "nothing changed")
        return 0
    ledger = claims.ledger()
    if options.paper and options.paper not in (papers := {claim.paper for claim in ledger}):
        raise ValueError(f"no claim is of {options.paper!r}; the ledger has {', '.join(sorted(papers))}")
    for claim in ledger:
        if options.paper in (None, claim.paper) and options.verdict in (None, claim.verdict):
            print(f"{claim.verdict:18} {claim.id}: {claim.statement}\n{'':18} paper: {claim.claimed}; ours: {claim.found}")
    return 0


def show_rules(options):
    if options.update:
        print(", ".join(f"{count} {status}" for status, count in rules.update().items()))
        return 0
    for entry in rules.read()["rule"]:
        written, rows = entry.get("written", "never"), entry.get("rows", "none")
        print(f"{entry['claim']}: {entry['status']}; written {written}, first rows {rows}")
        for change in entry["changes"]:
            print(f"    {change}")
    for entry in rules.read()["withdrawn"]:
        print(f"{entry['claim']}: withdrawn; {entry['change']}")
    return 0


def progress_of(study, state=None):
    state = state or states.state_of(study)
    if not state.readable:
        return "the table cannot be read"
    return f"{len(state.rows)} of {state.total} runs done" + (f", {state.failed} failed" if state.failed else "")


if __name__ == "__main__":
    sys.exit(main())
