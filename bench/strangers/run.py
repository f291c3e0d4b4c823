#!/usr/bin/env python3
"""A bench of strangers: draws cases, lets `assay check` look at them, and counts. See README.md.

    run.py --assay build/release/src/cli/assay --faults 120 --healthy 60 --seed 1 --out build/strangers.jsonl --work build/strangers
    run.py --assay ... --case F1-17            one case alone: its files, commands, and what check says (F1-17-2: of the second generation)
"""
import argparse
import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys
import time

import report
from cases import draw_case, id_of, write
from judge import INNER, OUTPUTS, command, judge, program, run


def examine(id, options, keep=False):
    """Draws, writes, checks and judges one case; a row a mode."""
    case, made_by = draw_case(id, options.assay), program(options.assay)
    folder = pathlib.Path(options.work) / id
    shutil.rmtree(folder, ignore_errors=True)
    write(case, folder)
    modes = (INNER, OUTPUTS) if id[0] == "F" else (INNER if case.intermediates else OUTPUTS,)
    rows = []
    for mode in modes:
        line = command(options.assay, folder, mode, case.options, options.search_time)
        found, seconds, error = run(line, folder, options.limit)
        row = {"id": id, "mode": mode, "column": case.column, "architecture": case.architecture, "kind": case.kind, "style": case.style,
               "opset": case.opset, "batch": case.batch, "nodes": len(case.model.graph.node), "seconds": round(seconds, 2), "error": error, "program": made_by,
               "blamed": case.blamed, "source": case.source}
        rows.append({**row, **({} if error else judge(case, mode, found, folder))})
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return rows


def examined(todo, options, late):
    """The rows of each case, as they come; no case is begun once it is `late`."""
    if options.jobs <= 1:
        for id in todo:
            if late():
                return
            yield examine(id, options)
        return
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(examine, id, options) for id in todo]
        for one in concurrent.futures.as_completed(waiting):
            if one.cancelled():
                continue
            yield one.result()
            if late():
                for other in waiting:
                    other.cancel()


def alone(id, options):
    for row in examine(id, options, keep=True):
        folder = pathlib.Path(options.work) / id
        line = command(options.assay, folder, row["mode"], draw_case(id, options.assay).options, options.search_time)
        print(f"\n{id}, {row['mode']}: {row['architecture']}, {row['kind']} {row['source']}")
        print(f"$ cd {folder} && OMP_NUM_THREADS=1 {' '.join(line)}", flush=True)
        subprocess.run(line, cwd=folder, check=False)
        print(json.dumps({k: v for k, v in row.items() if k not in ("id", "mode")}, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=0, help="how many faulty models")
    parser.add_argument("--healthy", type=int, default=0, help="how many healthy ones")
    parser.add_argument("--generation", choices=("1", "2", "3", "4", "5", "6", "7", "8", "both", "all"), default="1",
                        help="of kinds and architectures; both: so many of the first and of the second; all: so many of each that has faults; 8: healthy models alone")
    parser.add_argument("--columns-only", action="store_true", help="figures by column, nothing by kind or architecture of a fault")
    parser.add_argument("--case", help="only this one, with all that is said")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--search-time", type=float, default=10, help="of check, in seconds")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a check is stopped")
    parser.add_argument("--slice", type=float, help="stop after so many seconds; the same command goes on where it stopped")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("strangers.jsonl"), help="rows; those that it has of this program are not run again")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("strangers"), help="folder of cases")
    parser.add_argument("--results", type=pathlib.Path, help="tables as Markdown")
    options = parser.parse_args()
    options.assay, options.work = options.assay.resolve(), options.work.resolve()
    if options.generation == "8" and options.faults:
        parser.error("generation 8 has healthy models alone: give --faults 0")
    if options.case:
        return alone(options.case, options)
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    rows = [r for r in rows if r["program"] == program(options.assay)]
    done = {r["id"] for r in rows}
    generations = {"both": (1, 2), "all": (1, 2, 3, 4, 5, 6, 7)}.get(options.generation) or (int(options.generation),)
    counts = (("F", options.faults), ("H", options.healthy))
    ids = [id_of(letter, options.seed, i, g) for g in generations for letter, count in counts for i in range(count)]
    todo, start = [i for i in ids if i not in done], time.monotonic()
    late = lambda: options.slice and time.monotonic() - start > options.slice
    with options.out.open("a") as out:
        for new in examined(todo, options, late):
            rows += new
            out.writelines(json.dumps(r) + "\n" for r in new)
            out.flush()
    wanted = set(ids)
    rows = [r for r in rows if r["id"] in wanted]
    text = report.tables(rows, len(ids), options)
    print(text if options.columns_only else text + "\n\n" + report.listing(rows, options))
    if options.results:
        options.results.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
