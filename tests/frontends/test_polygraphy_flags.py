#!/usr/bin/env python3
"""assay polygraphy: what each flag does, in each subcommand that has it.

    test_polygraphy_flags.py ASSAY SOURCES

SOURCES is src/frontends/polygraphy. Every line of the tables runs with its flag and without it, each in a folder of its own, and
what is looked at has to differ: a flag that is read and dropped fails. It runs once more with every other spelling of the
flag, which has to do the same. A flag that works (flags.inc) and has no line here for one of its subcommands fails, too.
"""
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from machine import has_avx512, skipped
from polygraphy_flag_models import write_all
from polygraphy_flag_rows import ELSEWHERE, NOTHING_TO_DO, ROWS, Run

failures = []


def expect(ok, what):
    if not ok:
        failures.append(what)


# ---- the tables of the program --------------------------------------------------------------------------------------


def read_tables(folder):
    """Of each flag that works its spellings and subcommands."""
    commands = {i: tool if name == "NULL" else f"{tool} {name[1:-1]}" for i, tool, name in
                re.findall(r'(?m)^PG_COMMAND\((\w+), "([\w-]+)", (NULL|"[\w-]+"),', open(f"{folder}/commands.inc").read())}
    sets = {"ALL": set(commands.values())}

    def value(text):
        found = set()
        for word in text.split("|"):
            word = word.strip()
            found |= {commands[word[2:-1]]} if word.startswith("C(") else sets[word]
        return found

    for name, text in re.findall(r"(?ms)^  ([A-Z]+) = ((?:C\(|[A-Z]+ \|).*?),$", open(f"{folder}/flags.c").read()):
        sets[name] = value(text)
    flags = {}
    row = r'(?s)PG_FLAG\(\s*(\w+),\s*"([^"]+)",\s*\w+,\s*(\w+),\s*\w+,\s*((?:[A-Z]+|C\(\w+\))(?:\s*\|\s*(?:[A-Z]+|C\(\w+\)))*)\s*,'
    for name, spellings, level, text in re.findall(row, re.sub(r"(?m)^//.*", "", open(f"{folder}/flags.inc").read())):
        flags[name] = (spellings.split(), level, value(text))
    return commands.values(), flags


def command_of(line, commands):
    words = line.split()
    return next((c for c in (" ".join(words[:2]), words[0]) if c in commands), None)


# ---- one line -------------------------------------------------------------------------------------------------------


def wanted(row, seen):
    try:
        return not row.want or row.want(seen)
    except (TypeError, IndexError, KeyError):
        return False


class Work:
    """Runs lines, each in a copy of the folder of models."""

    def __init__(self, program, models, place):
        self.program, self.models, self.place = program, models, place

    def run(self, row, line, flag):
        folder = tempfile.mkdtemp(dir=self.place)
        shutil.copytree(self.models, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)  # external data with several names is refused
        r = Run(self.program, folder, row.env)
        try:
            for step in row.before:
                r.call(step)
                if r.code:
                    raise RuntimeError(f"{step}: exit {r.code}\n{r.out[-500:]}{r.err[-500:]}")
            r.call(line.replace("@", flag))
            first = r.code, r.out, r.err
            for step in row.then:
                r.call(step)
            (r.last, r.said), (r.code, r.out, r.err) = (r.code, r.out + r.err), first
            try:
                seen = row.see(r)
            except (OSError, IndexError, KeyError) as e:  # what is looked at is not there
                seen = type(e).__name__
            return r.code, seen, (r.out + r.err)[-900:]
        finally:
            shutil.rmtree(folder)

    def check(self, row, line, spellings):
        """What is wrong with a line of the table."""
        def given(name):
            return f"{name} {row.given}".strip()
        out = []
        spellings = [s for s in spellings if s.startswith("--")] + [s for s in spellings if not s.startswith("--")]
        code, seen, text = self.run(row, line, given(spellings[0]))
        where = f"{row.flag}: {line.replace('@', given(spellings[0]))}"
        if row.codes[0] not in (code, None):
            out.append(f"{where}: exit {code}, not {row.codes[0]}\n{text}")
        if not wanted(row, seen):
            out.append(f"{where}: {str(seen)[:900]} is not what is wanted\n{text}")
        if not row.same:
            code, other, text = self.run(row, line, "")
            if row.codes[1] not in (code, None):
                out.append(f"{where}: without the flag exit {code}, not {row.codes[1]}\n{text}")
            if other == seen:
                out.append(f"{where}: the same without it: {str(seen)[:600]}\n{text}")
        for name in spellings[1:]:
            code, again, text = self.run(row, line, given(name))
            if row.codes[0] not in (code, None) or again != seen:
                out.append(f"{where}: {name} does not do the same: {str(again)[:300]}, not {str(seen)[:300]}\n{text}")
        return out


def main():
    program, sources = (os.path.abspath(a) for a in sys.argv[1:3])
    only = set(sys.argv[3:])
    commands, flags = read_tables(sources)
    expect(len(flags) > 200 and len(commands) == 22, f"{len(flags)} flags, {len(commands)} subcommands read")
    works = {f for f, (_, level, _) in flags.items() if level == "WORKS"}
    rows = ROWS
    if not has_avx512():
        skipped("load_tactics", "one tactic takes each layer without AVX-512")
        rows = [row for row in ROWS if row.flag != "load_tactics"]
    covered = {(row.flag, command_of(line, commands)) for row in ROWS for line in row.lines}
    for flag in sorted(works):
        for command in sorted(flags[flag][2]):
            known = (flag, command) in covered or (flag, command) in NOTHING_TO_DO or flag in ELSEWHERE
            expect(known, f"{flag}: no line shows what it does in '{command}'")
    for flag, command in covered | set(NOTHING_TO_DO):
        expect(flag in flags and command in flags[flag][2], f"{flag}: '{command}' has no such flag")
    here = os.path.dirname(os.path.abspath(__file__))
    for flag, (file, part) in ELSEWHERE.items():
        expect(flag in flags and part in open(f"{here}/{file}").read(), f"{flag}: nothing in {file} is called {part}")
    with tempfile.TemporaryDirectory() as place:
        models = f"{place}/models"
        os.mkdir(models)
        write_all(program, models)
        work = Work(program, models, place)
        jobs = [(row, line) for row in rows for line in row.lines if row.flag in flags and (not only or row.flag in only)]
        with ThreadPoolExecutor(2) as pool:
            for found in pool.map(lambda job: work.check(*job, flags[job[0].flag][0]), jobs):
                failures.extend(found)
    for f in failures:
        print("FAILED", f)
    print(f"{len(jobs)} lines of {len({row.flag for row in rows})} flags, {len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
