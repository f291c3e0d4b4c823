"""Counts by kind and mode, as Markdown."""
import collections

MODES = {"E": "the engine's fault", "I": "the export's fault, golden inner values", "O": "the export's fault, golden outputs only"}
GOALS = {"E": 0.99, "I": 0.99, "O": 0.80}
CAUSE_GOAL = 0.90
COUNTED = ("right", "missed", "wrong node", "failed", "too slow")


def line(row):
    text = f"{row['index']:4} {row['mode']} {row['verdict']:11} {row['kind']}"
    if "what" in row:
        text += f" | {row['model']} {row['what']}"
    if row.get("cause"):
        text += f" | {row['cause']}{'' if row.get('cause_right') else ' (another cause)'}"
    if row.get("restored") is False:
        text += " | not restored"
    if row.get("ranked") and row["verdict"] != "right":
        text += f" | {row['ranked'][:3]}"
    return text + f" | {row.get('seconds', 0)} s of {row['all_seconds']} s"


def share(part, whole):
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else "0 of 0"


def counted(rows, mode):
    return [r for r in rows if r["mode"] == mode and r["verdict"] in COUNTED]


def counted_from_once(rows, mode):
    """Also those that change more than rounding does, but less than what counts as explained."""
    return counted(rows, mode) + [r for r in rows if r["mode"] == mode and r["verdict"].startswith("weak")
                                  and (r.get("over_noise") or 0) > 1]


def once(rows):
    parts = [(mode, counted_from_once(rows, mode)) for mode in ("I", "O")]
    return ", ".join(f"{mode} {share(sum(is_right(r) for r in of), len(of))}" for mode, of in parts)


def is_right(row):
    """Right node; where only outputs are known, the repaired model must give golden, too."""
    return row["verdict"] == "right" and (row["mode"] != "O" or row.get("restored") is True)


def has_cause(row):
    """The cause is asked for where something can tell it."""
    return row["verdict"] == "right" and row["kind"] not in ("stale row", "rounded weight")


def mode_line(rows, mode):
    all_of = counted(rows, mode)
    right = sum(is_right(r) for r in all_of)
    named = [r for r in all_of if r["mode"] == "E" or r["kind"] not in ("stale row", "rounded weight")]
    cause = sum(bool(r.get("cause_right")) for r in named)
    weak = [r for r in rows if r["mode"] == mode and r["verdict"].startswith("weak")]
    blamed = sum(r["verdict"] == "weak blamed" for r in weak)
    slowest = max((r.get("seconds") or 0 for r in all_of), default=0)
    first = sum(bool(r.get("first")) for r in all_of)
    extra = f"; first {share(first, len(all_of))}" if mode == "O" else ""
    return (f"| {mode} | {MODES[mode]} | {share(right, len(all_of))}{extra} | {share(cause, len(named))} | "
            f"{len(weak)} ({blamed} blame another node) | {slowest:.0f} s |")


def healthy_lines(healthy):
    alarms = [h for h in healthy if h[2] in ("export", "engine", "failed")]
    text = [f"Healthy models held against golden that rounding moved: {len(healthy)} checks, {len(alarms)} false alarms."]
    return text + [f"- {model}, {golden}: {blame} {what}" for model, golden, blame, what in alarms] + [""]


def table(rows, seed, names, date, healthy):
    text = [f"# Mutants of {date}", "", f"Seed {seed}; {len(rows)} mutants of {', '.join(names)}.", "",
            "| | | found | kind of cause right | weak | slowest |", "| --- | --- | --- | --- | --- | --- |"]
    text += [mode_line(rows, mode) for mode in MODES if any(r["mode"] == mode for r in rows)]
    text += ["", "Found: E, I: the right node is the first culprit; O: it is among the first three, and the repaired "
             "model that was written gives golden again. Weak mutants are not counted: rounding explains what they do "
             "(of an export: up to 8 times what one rounding of every constant does; "
             f"were they to count from once that: {once(rows)}).", ""]
    text += healthy_lines(healthy) if healthy else []
    for mode, name in MODES.items():
        if any(r["mode"] == mode for r in rows):
            text += kinds_table(rows, mode, name)
    return "\n".join(text) + "\n"


def kinds_table(rows, mode, name):
    by_kind = collections.OrderedDict()
    for r in sorted((r for r in rows if r["mode"] == mode), key=lambda r: r["kind"]):
        by_kind.setdefault(r["kind"], []).append(r)
    text = [f"## {mode}: {name}", "", "| kind | mutants | found | cause right | weak | missed | wrong node | failed | too slow |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for kind, of in by_kind.items():
        n = collections.Counter(r["verdict"] for r in of)
        if n["no place"] == len(of):
            continue
        text.append(f"| {kind} | {len(of) - n['no place']} | {sum(is_right(r) for r in of)} | "
                    f"{sum(bool(r.get('cause_right')) for r in of)} | {n['weak'] + n['weak blamed']} | {n['missed']} | "
                    f"{n['wrong node'] + sum(r['verdict'] == 'right' and not is_right(r) for r in of)} | {n['failed']} | {n['too slow']} |")
    return text + [""]


def goals_met(rows, healthy):
    if any(h[2] in ("export", "engine", "failed") for h in healthy):
        return False
    named = right_causes = 0
    for mode, goal in GOALS.items():
        of = counted(rows, mode)
        if of and sum(is_right(r) for r in of) < goal * len(of):
            return False
        named += sum(r["mode"] == "E" or r["kind"] not in ("stale row", "rounded weight") for r in of)
        right_causes += sum(bool(r.get("cause_right")) for r in of)
    return right_causes >= CAUSE_GOAL * named and not any(r["verdict"] == "weak blamed" for r in rows)
