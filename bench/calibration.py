#!/usr/bin/env python3
"""Whether the probabilities that `assay check` says hold: of the culprits said with so much, how many are right?

    calibration.py build/calibration.jsonl --assay build/release/src/cli/assay --seed 11 --faults 120   draws, checks, adds rows, counts
    calibration.py build/calibration.jsonl [...] [--results bench/results/calibration.md] [--title TEXT]   counts
    calibration.py build/strangers.jsonl [...] [--column "third generation"]   counts rows of bench/strangers/run.py, without running anything

Draws models and faults of bench/strangers and checks them with golden outputs only; the same command goes on where it stopped. A row has
"probability", what is said of the first culprit, "first", whether it is one of the nodes at fault, and, where no single node explains the
difference, "region": {"probability", "right"}. Prints by bins of what was said how many were right. Ends with exit code 1 if fewer than 9 in
10 of those said with 0.85 or more are right. The coefficients of src/diagnose/outputs/likelihood.c are from seeds 7 to 10: take others.
"""
import argparse
import json
import pathlib
import shutil
import sys

STRANGERS = pathlib.Path(__file__).resolve().parent / "strangers"
BINS = (0, 0.2, 0.4, 0.6, 0.85, 0.94, 1.0001)
SURE = 0.85
AT_LEAST = 0.9


def examine(id, assay, folder, seconds):
    """One case, drawn, checked and judged."""
    from cases import draw_case, write  # noqa: PLC0415: only where cases are drawn
    from judge import OUTPUTS, command, judge, run  # noqa: PLC0415
    case, folder = draw_case(id, assay), folder / id
    shutil.rmtree(folder, ignore_errors=True)
    write(case, folder)
    found, took, error = run(command(assay, folder, OUTPUTS, case.options, seconds), folder, 120)
    row = {"id": id, "mode": OUTPUTS, "column": case.column, "architecture": case.architecture, "kind": case.kind, "seconds": round(took, 2), "error": error}
    if not error:
        row |= judge(case, OUTPUTS, found, folder)
    shutil.rmtree(folder, ignore_errors=True)
    return row


def draw(options):
    sys.path.insert(0, str(STRANGERS))
    path = options.rows[0]
    done = {json.loads(line)["id"] for line in path.read_text().splitlines()} if path.exists() else set()
    for id in (f"F{options.seed}-{i}" for i in range(options.faults)):
        if id in done:
            continue
        row = examine(id, options.assay.resolve(), options.work.resolve(), options.search_time)
        with path.open("a") as out:
            out.write(json.dumps(row) + "\n")


def pairs(rows, part=None):
    """(said, right) of each row that says something."""
    for row in rows:
        about = row if part is None else row.get(part) or {}
        said = about.get("probability")
        if said is not None and not row.get("error"):
            yield said, bool(row["first"] if part is None else about["right"])


def table(said):
    lines = ["| said | culprits | on average | right |", "|---|---|---|---|"]
    for low, high in zip(BINS, BINS[1:]):
        part = [(p, r) for p, r in said if low <= p < high]
        if part:
            right = sum(r for _, r in part)
            lines.append(f"| {low:.2f} to {min(high, 1):.2f} | {len(part)} | {sum(p for p, _ in part) / len(part):.2f} "
                         f"| {right} ({right / len(part):.2f}) |")
    return "\n".join(lines)


def brier(said):
    """The mean square of what was said less what was right: 0 is best, 0.25 what a half always gives."""
    return sum((p - r) ** 2 for p, r in said) / len(said)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=pathlib.Path, nargs="+")
    parser.add_argument("--results", type=pathlib.Path, help="write the tables here as well")
    parser.add_argument("--title", default="", help="first line: date, machine, commit, seed")
    parser.add_argument("--assay", type=pathlib.Path, help="draw cases and check them with this program")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--faults", type=int, default=120)
    parser.add_argument("--search-time", type=float, default=10, help="of check, in seconds")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/calibration"), help="folder of cases")
    parser.add_argument("--column", help="only rows of this column of the bench of strangers, such as 'third generation'")
    options = parser.parse_args()
    if options.assay:
        draw(options)
    rows = [json.loads(line) for path in options.rows for line in path.read_text().splitlines() if line.strip()]
    rows = [r for r in rows if r.get("mode", "outputs only") == "outputs only" and "first" in r
            and options.column in (None, r.get("column"))]
    said, regions = list(pairs(rows)), list(pairs(rows, "region"))
    if not said:
        print("no row has a probability", file=sys.stderr)
        return 2
    text = "\n\n".join([*([options.title] if options.title else []), f"The first culprit, of {len(said)} checks with outputs only:", table(said),
                        f"Mean square of said less right: {brier(said):.3f}."])
    if regions:
        text += "\n\n" + f"The region, of {len(regions)} checks where no single node explains the difference:\n\n" + table(regions)
    print(text)
    if options.results:
        options.results.write_text(text + "\n")
    sure = [r for p, r in said if p >= SURE]
    return 0 if not sure or sum(sure) >= AT_LEAST * len(sure) else 1


if __name__ == "__main__":
    sys.exit(main())
