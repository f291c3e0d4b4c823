"""Tables of a run, as Markdown."""
import collections
import datetime
import pathlib
import platform
import subprocess

from architectures import SPLIT
from cases import COLUMNS, FIFTH, FOURTH, LATER, SEVENTH, SIXTH, THIRD
from faults import KINDS
from judge import INNER, OUTPUTS


def share(rows, key):
    good = sum(bool(r.get(key)) for r in rows)
    return f"{good / len(rows):.1%} ({good} of {len(rows)})" if rows else "-"


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{cpu}, 1 thread"


def acceptance(faults):
    held = "held out, first generation"
    lines = ["| | " + " | ".join((*COLUMNS, held, LATER, THIRD, FOURTH, FIFTH, SIXTH, SEVENTH)) + " |", "|---" * (len(COLUMNS) + 8) + "|"]
    for mode, key, text in ((INNER, "first", "golden intermediates: first culprit right"), (INNER, "fixed", "golden intermediates: fix verified"),
                            (OUTPUTS, "three", "golden outputs only: right among three"),
                            (OUTPUTS, "explained", "golden outputs only: right among three, or mended elsewhere"),
                            (OUTPUTS, "fixed", "golden outputs only: fix verified")):
        rows = [{**r, "explained": r.get("three") or r.get("fixed")} for r in faults if r["mode"] == mode]
        columns = [(c,) for c in COLUMNS] + [COLUMNS[1:], (LATER,), (THIRD,), (FOURTH,), (FIFTH,), (SIXTH,), (SEVENTH,)]
        cells = [share([r for r in rows if r["column"] in c], key) for c in columns]
        lines.append(f"| {text} | " + " | ".join(cells) + " |")
    return lines


def outcome(row):
    """Why a row falls short, in words."""
    if row["error"]:
        return row["error"][:60]
    if row["unnoticed"]:
        return "not noticed"
    named = row["first"] if row["mode"] == INNER else row["three"]
    if not named:
        return "no node named" if not row["says"] else "another node named"
    if row["claims"] and not row["fixed"]:
        return "fix does not hold: " + row["fix_wrong"][:60]
    return "" if row["fixed"] else "node right, no fix"


def failures(faults):
    count = collections.Counter((r["mode"], r["kind"], outcome(r)) for r in faults if outcome(r))
    total = collections.Counter((r["mode"], r["kind"]) for r in faults)
    lines = ["| golden | kind of fault | | cases |", "|---|---|---|---|"]
    for (mode, kind, why), n in sorted(count.items(), key=lambda x: (-x[1], x[0])):
        lines.append(f"| {mode} | {kind}{' (held out)' if KINDS[kind].held_out else ''} | {why} | {n} of {total[mode, kind]} |")
    return lines


def tables(rows, wanted, options):
    faults = [r for r in rows if r["id"][0] == "F"]
    healthy = [r for r in rows if r["id"][0] == "H"]
    alarms = [r for r in healthy if r.get("alarm") or r["error"]]
    try:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    again = f"bench/strangers/run.py --assay build/release/src/cli/assay --search-time {options.search_time:g} --case"
    programs = " and ".join(sorted({r["program"] for r in rows}))
    chosen = f" --generation {options.generation}" if options.generation != "1" else ""
    lines = [f"{datetime.date.today()}, {machine()}, bench at commit {commit}, program {programs or 'none'} (sha256), seed {options.seed}, "
             f"split '{SPLIT}', search time {options.search_time:g} s", "",
             f"    bench/strangers/run.py --assay build/release/src/cli/assay --seed {options.seed} --faults {options.faults} --healthy "
             f"{options.healthy} --search-time {options.search_time:g}{chosen}{' --columns-only' if options.columns_only else ''}", ""]
    done = len({r["id"] for r in rows})
    if done < wanted:
        lines += [f"{done} of {wanted} cases so far.", ""]
    if faults:
        claims = [r for r in faults if r.get("claims")]
        broken = sum(not r["fixed"] for r in claims)
        lines += [*acceptance(faults), "", f"Of {len(claims)} fixes that check calls verified, {broken} do not hold on fresh inputs in ONNX Runtime.",
                  f"Faults not noticed at all: {sum(bool(r.get('unnoticed')) for r in faults)} of {len(faults)} checks."
                  f" Checks that ended with an error: {sum(bool(r['error']) for r in rows)}.", ""]
    lines += [f"Healthy models: {len(healthy)}, false alarms: {sum(bool(r.get('alarm')) for r in healthy)},"
              f" not carried out: {sum(bool(r['error']) for r in healthy)}.", ""]
    by_kind = collections.defaultdict(list)
    for r in healthy:
        by_kind[r["kind"]].append(r)
    lines += ["| healthy | models | false alarms | not carried out |", "|---|---|---|---|"]
    lines += [f"| {k} | {len(v)} | {sum(bool(r.get('alarm')) for r in v)} | {sum(bool(r['error']) for r in v)} |" for k, v in sorted(by_kind.items())]
    lines += ["", "False alarms:", ""]
    lines += [f"- {r['architecture']} ({r['style']}, opset {r['opset']}, batch {r['batch']}), {r['kind']}: "
              f"{r.get('alarm') or r['error']}  `{again} {r['id']}`" for r in alarms]
    if options.columns_only:  # who tunes learns nothing of kinds and networks
        seconds = sorted((r["seconds"] for r in rows), reverse=True)
        return "\n".join([*lines, "", f"Slowest checks: {', '.join(f'{x:g}' for x in seconds[:5])} s; the middle one {seconds[len(seconds) // 2]:g} s."])
    lines += ["", "Slowest:", "", "| case | golden | architecture | nodes | seconds |", "|---|---|---|---|---|"]
    slowest = sorted(rows, key=lambda r: -r["seconds"])[:10]
    lines += [f"| {r['id']} | {r['mode']} | {r['architecture']} | {r['nodes']} | {r['seconds']} |" for r in slowest]
    lines += ["", "What fell short, by kind:", "", *failures(faults)]
    return "\n".join(lines)


def listing(rows, options):
    """What fell short, case by case; each can be run alone."""
    lines = [f"Each alone: bench/strangers/run.py --assay {options.assay} --search-time {options.search_time:g} --case ID"]
    for r in rows:
        if r["id"][0] == "F" and outcome(r):
            lines.append(f"{r['id']} {r['mode']}: {r['architecture']} ({r['style']}, batch {r['batch']}), {r['kind']}, {r['column']}: "
                         f"{outcome(r)}; at fault {', '.join(r['blamed'][:3])}; says {r.get('says', '')[:120] or 'nothing'}")
    return "\n".join(lines)
