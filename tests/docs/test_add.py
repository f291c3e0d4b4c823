#!/usr/bin/env python3
"""Compiles, registers, tests and runs the examples of the pages "How to add ...".

    test_add.py PAGE... --build BUILD --source ROOT [--update] [--keep FOLDER]

The example of a page is put into a copy of the sources. What it adds or changes is compiled with the flags of BUILD and linked in
front of BUILD's library, so that nothing else is compiled and neither ROOT nor BUILD changes. recipe.py says how pages are written.

Then these have to hold: the layout and the includes of the copy, the format of its C files, the tests that the page adds or
names, a page of documentation that it adds, and its commands, which run in the copy with `assay` in the PATH.
--update writes into the pages what the commands print now. --keep leaves the copies in FOLDER.
"""
import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import compiled
import pages
import recipe

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import check_house  # noqa: E402

TIMEOUT_S = 300
UNCHANGED = ["-O1", "-g0", "-w"]  # compiled in half the time
NOT_COPIED = ("build", ".git", ".github", "shared", "__pycache__")


class Failure(Exception):
    """What is wrong with an example."""


def output_of(done):
    lines = done.stdout.strip().splitlines()
    return "\n".join("    " + line for line in lines[-40:])


def run(what, command, **options):
    try:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              timeout=TIMEOUT_S, **options)
    except subprocess.TimeoutExpired:
        raise Failure(f"{what}: not done after {TIMEOUT_S} seconds") from None
    if done.returncode:
        raise Failure(f"{what} ends with {done.returncode}:\n{output_of(done)}")


def copy_of(source, tree):
    """The sources, without what is built, and the Python that the tests run with."""
    def left_out(folder, names):
        return [n for n in names if n == "__pycache__" or (pathlib.Path(folder) == source and n in NOT_COPIED)]
    shutil.copytree(source, tree, ignore=left_out, symlinks=True, dirs_exist_ok=True)
    (tree / "build/release/src/cli").mkdir(parents=True)
    (tree / "build/release/tests").mkdir()
    (tree / "build/venv").symlink_to(pathlib.Path(sys.prefix).absolute())


# ---- compiling ----------------------------------------------------------------------------------

class Example:
    """A page's example in its copy of the sources."""

    def __init__(self, page, build, source, tree):
        self.page, self.build, self.tree = page, build, tree
        copy_of(source, tree)
        self.added, self.changed = page.apply(tree)
        self.objects = {}  # by the command's output: the object made in its place

    def path(self, *parts):
        return self.tree.joinpath("build", "release", *parts)

    def sources_of(self, kind):
        return [p for p in self.added + self.changed if p.startswith(kind) and p.endswith(".c")]

    def test_programs(self):
        """Tests of BUILD that the page changes or names."""
        names = [f"{p.split('/')[1]}_{pathlib.Path(p).stem}" for p in self.sources_of("tests/") if p in self.changed]
        return [f"tests/{n}" for n in dict.fromkeys(names + [n.replace("/", "_") for n in self.page.tests])]

    def shown_programs(self):
        """Programs of BUILD, besides assay, that the page's commands run."""
        return list(dict.fromkeys(re.findall(r"build/release/(tests/\w+)", self.page.command_text())))

    def units(self):
        """What has to be compiled of what BUILD compiles, by output."""
        changed = set(self.changed)
        found, used = {}, set()
        for unit in self.build.units.values():
            reasons = self.build.reasons(self.tree, unit, changed)
            used |= reasons
            if reasons:
                found[unit.output] = unit
        for path in sorted(changed - used):
            if pathlib.Path(path).suffix in (".c", ".h", ".inc"):
                raise Failure(f"{path}: nothing that is compiled has it")
        return found

    def compile(self, command, output):
        done = subprocess.run(command, cwd=self.build.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise Failure(f"{output} is not compiled:\n{output_of(done)}")

    def compile_all(self, wanted):
        """Units of BUILD that are to be made again, by output, and new sources."""
        jobs = []
        for output, unit in wanted.items():
            made = self.path("objects", output)
            self.objects[output] = made
            command = self.build.relocated(unit.command, self.tree, unit.source, unit.source, made)
            if unit.source not in self.changed:  # a header that it has is changed; BUILD has it with all warnings
                command += UNCHANGED
            jobs.append((command, unit.source))
        for source in self.sources_of("src/"):
            if source in self.added:
                made = self.path("objects", source + ".o")
                self.objects[source] = made
                jobs.append((self.build.command_of_new(source, self.tree, made), source))
        for made in self.objects.values():
            made.parent.mkdir(parents=True, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            for future in [pool.submit(self.compile, *job) for job in jobs]:
                future.result()

    # ---- linking --------------------------------------------------------------------------------

    def link(self, program, instead=None):
        """A program of BUILD, with the example. instead: an object in place of its own."""
        command = self.build.link_command(program)
        own = [self.build.units[word] for word in command if word in self.build.units]
        sources = {unit.source for unit in own}
        has_cli = any("assay_cli_parts" in unit.output for unit in own)
        front = []
        for output, made in self.objects.items():
            source = self.build.units[output].source if output in self.build.units else output
            if output in command or source in sources or (output in self.build.units and not self.build.is_library(output)):
                continue
            if has_cli or not source.startswith(("src/cli/", "src/frontends/")):
                front.append(str(made))
        made = self.path(program) if instead is None else self.path("tests", instead[0])
        line = []
        for i, word in enumerate(command):
            if word.endswith("libassay_inside.a") and front:
                line, front = line + front, []
            if i and command[i - 1] == "-o":
                word = str(made)
            elif instead and word in self.build.units and word.startswith("tests/"):
                word = str(instead[1])
            line.append(str(self.objects.get(word, word)))
        done = subprocess.run(line, cwd=self.build.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise Failure(f"{made.name} is not linked:\n{output_of(done)}")
        return made

    def link_new_test(self, source):
        """A new tests/FOLDER/test_NAME.c is compiled and linked as its neighbours are."""
        folder, name = source.split("/")[1], pathlib.Path(source).stem
        neighbour = self.build.neighbour_test(folder)
        made = self.path("objects", source + ".o")
        made.parent.mkdir(parents=True, exist_ok=True)
        unit = neighbour.unit
        self.compile(self.build.relocated(unit.command, self.tree, unit.source, source, made), source)
        return self.link(neighbour.program, (f"{folder}_{name}", made))

    # ---- running --------------------------------------------------------------------------------

    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}
        return {**env, "PATH": f"{self.path('src/cli')}:{env['PATH']}", "LC_ALL": "C.UTF-8",
                "ASSAY_TEST_MODELS": str(self.build.folder / "models"),
                "ASSAY_TEST_OPS": str(self.build.folder / "tests/ops_libraries"), "OMP_NUM_THREADS": env.get("OMP_NUM_THREADS", "2")}

    def check_sources(self):
        run("tests/check_includes.py", [sys.executable, self.tree / "tests/check_includes.py", self.tree])
        faults = [*check_house.layout_faults(self.tree), *check_house.opening_faults(self.tree), *check_house.tag_faults(self.tree)]
        for full in [f for f in faults if f.endswith("make sub-folders")]:  # which says nothing about the example
            print(f"note: {full}")
            faults.remove(full)
        if faults:
            raise Failure("tests/check_house.py:\n" + "\n".join("    " + f for f in faults))
        files = [p for p in self.added + self.changed if p.endswith((".c", ".h"))]
        for path in files if shutil.which("clang-format-14") else []:
            text = (self.tree / path).read_text()
            done = subprocess.run(["clang-format-14", path], cwd=self.tree, text=True, stdout=subprocess.PIPE, check=True)
            if done.stdout != text:
                raise Failure(f"{path} is not as scripts/format leaves it:\n{pages.difference(text.splitlines(), done.stdout.splitlines())}")

    def check_documents(self):
        """New pages of the documentation, and the index."""
        new = [p for p in self.added if p.startswith("docs/")]
        if new:
            run("tests/docs/test_pages.py", [sys.executable, "tests/docs/test_pages.py", self.path("src/cli/assay"), "--index", *new],
                cwd=self.tree, env=self.environment())

    def run_test(self, program):
        run(f"the test {program.name}", [program], cwd=self.tree / "tests", env=self.environment())

    def run_tests(self):
        for source in self.sources_of("tests/"):
            if source in self.added:
                self.run_test(self.link_new_test(source))
        for program in self.test_programs():
            self.run_test(self.link(program))

    def run_commands(self, update):
        wrong, code = [], 0
        for program in self.shown_programs():
            if not self.path(program).exists():
                self.link(program)
        for command in self.page.commands():
            done = subprocess.run(["bash", "-c", f"(exit {code}); {command.text}"], cwd=self.tree, env=self.environment(), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)
            code, lines = done.returncode, [line.rstrip() for line in done.stdout.splitlines()]
            if code < 0 or code >= 126:
                wrong.append(f"'{command.text}' ends with {code}:\n{done.stdout}")
            elif update:
                command.shown = pages.updated(command.shown, lines)
            elif not pages.output_is(command.shown, lines):
                wrong.append(f"'{command.text}' prints other lines:\n{pages.difference(command.shown, lines)}")
        if wrong:
            raise Failure("\n".join(wrong))


def run_page(path, build, source, tree, update):
    """What is wrong with a page; None if nothing is."""
    try:
        page = recipe.Page(path.read_text())
        if not page.placed or not list(page.commands()):
            raise Failure("it has no example: files, and commands in a shell-session block")
        example = Example(page, build, source, tree)
        example.check_sources()
        units = example.units()
        programs = ["src/cli/assay", *example.test_programs(), *example.shown_programs()]
        needed = {word for program in programs for word in build.link_command(program)}
        example.compile_all({o: u for o, u in units.items() if build.is_library(o) or o in needed})
        example.link("src/cli/assay")
        example.run_tests()
        example.check_documents()
        example.run_commands(update)
        if update and page.written() != path.read_text():
            path.write_text(page.written())
            print(f"written: {path.name}")
    except (Failure, ValueError, compiled.NotBuilt, subprocess.TimeoutExpired) as e:
        return f"{path.name}: {e}"
    return None


@contextlib.contextmanager
def folder_for(keep, path):
    if keep:
        shutil.rmtree(keep / path.stem, ignore_errors=True)
        yield keep / path.stem
    else:
        with tempfile.TemporaryDirectory(prefix="assay-add-") as folder:
            yield pathlib.Path(folder) / "tree"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a folder in which everything is built")
    parser.add_argument("--source", type=pathlib.Path, required=True, help="the sources")
    parser.add_argument("--update", action="store_true", help="write into the pages what the commands print")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the copies of the sources there")
    options = parser.parse_args()
    build = compiled.Build(options.build.resolve())
    wrong = []
    for path in options.pages:
        with folder_for(options.keep, path) as tree:
            fault = run_page(path.resolve(), build, options.source.resolve(), tree, options.update)
        if fault:
            wrong.append(fault)
            again = [sys.executable, __file__, path, "--build", options.build, "--source", options.source, "--keep", "/tmp/assay-add"]
            print(f"{fault}\nagain: {shlex.join(map(str, again))}")
    print(f"{len(options.pages)} pages, {len(wrong)} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
