"""What a build folder of CMake and Ninja compiles and links, and the commands with which it does."""
import collections
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)
FOLDERS = "src|include|tests|bench|fuzz|examples"


class NotBuilt(Exception):
    """The build folder lacks something."""


class Unit:
    """A source that is compiled. source: within the project; output: within the build folder."""

    def __init__(self, source, output, command):
        self.source, self.output, self.command = source, output, command


Neighbour = collections.namedtuple("Neighbour", "program unit")


class Build:
    def __init__(self, folder):
        self.folder = folder
        if not (folder / "compile_commands.json").exists():
            raise NotBuilt(f"{folder} has no compile_commands.json: configure it with cmake")
        cache = (folder / "CMakeCache.txt").read_text()
        self.home, self.made_as = (pathlib.Path(re.search(rf"^{name}:INTERNAL=(.*)$", cache, re.M)[1])
                                   for name in ("CMAKE_HOME_DIRECTORY", "CMAKE_CACHEFILE_DIR"))
        self.units = {}
        for entry in json.loads((folder / "compile_commands.json").read_text()):
            command, path = shlex.split(entry["command"]), pathlib.Path(entry["file"])
            if path.is_relative_to(self.home) and "-o" in command:
                output = command[command.index("-o") + 1]
                self.units[output] = Unit(str(path.relative_to(self.home)), output, command)

    @staticmethod
    def is_library(output):
        """Whether an object is a member of libassay_inside.a."""
        return output.startswith("CMakeFiles/assay_")

    # ---- commands -------------------------------------------------------------------------------

    def relocated(self, command, tree, was, source, output):
        """The command for `source` of another tree, in place of `was` of the project."""
        words = [re.sub(rf"{re.escape(str(self.home))}/({FOLDERS})(?=/|$)", rf"{tree}/\1", w) for w in command]
        words[words.index("-o") + 1] = str(output)
        words[words.index(f"{tree}/{was}")] = f"{tree}/{source}"
        return words

    def command_of_new(self, source, tree, output):
        """As most sources of the nearest folder are compiled that has any."""
        folder = pathlib.Path(source).parent
        while folder.name:
            near = [u for u in self.units.values() if pathlib.Path(u.source).is_relative_to(folder) and not u.output.startswith("tests/")]
            if near:
                kinds = collections.defaultdict(list)
                for unit in near:
                    kinds[tuple(w for w in unit.command if w != unit.output and not w.endswith(unit.source))].append(unit)
                unit = max(kinds.values(), key=len)[0]
                return self.relocated(unit.command, tree, unit.source, source, output)
            folder = folder.parent
        raise NotBuilt(f"no source near {source} is compiled")

    @functools.lru_cache(maxsize=None)
    def link_command(self, program):
        done = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", "-s", program], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        words = shlex.split(done.stdout.splitlines()[-1]) if done.returncode == 0 and done.stdout else []
        if "-o" not in words or words[words.index("-o") + 1] != program:
            raise NotBuilt(f"{self.folder} builds no {program}")
        missing = [w for w in words if w in self.units and not (self.folder / w).exists()]
        if missing:
            raise NotBuilt(f"{missing[0]} is not there: build {program} before")
        return words[words.index("&&") + 1:len(words) - words[::-1].index("&&") - 1]

    def neighbour_test(self, folder):
        """A test of tests/FOLDER that is one object and links with nothing but the library."""
        for unit in self.units.values():
            name = pathlib.Path(unit.source).stem
            program = f"tests/{folder}_{name}"
            if unit.source == f"tests/{folder}/{name}.c" and name.startswith("test_") and f"/{folder}_{name}.dir/" in unit.output:
                if sum(w in self.units for w in self.link_command(program)) == 1:
                    return Neighbour(program, unit)
        raise NotBuilt(f"no test of tests/{folder} is built")

    # ---- what has to be compiled again ----------------------------------------------------------

    @functools.cached_property
    def dependencies(self):
        """By output: the files of the project that it was made of, as Ninja knows them."""
        done = subprocess.run(["ninja", "-C", self.folder, "-t", "deps"], text=True, stdout=subprocess.PIPE, check=True)
        found, output = {}, None
        for line in done.stdout.splitlines():
            if line.startswith("    "):
                path = pathlib.Path(os.path.normpath(self.made_as / line.strip()))
                if path.is_relative_to(self.home):
                    found[output].add(str(path.relative_to(self.home)))
            elif line:
                output = line.split(":")[0]
                found[output] = set()
        return found

    def reasons(self, tree, unit, changed):
        """Which changed files a unit has to be compiled again for: itself, tables that its own text includes, headers."""
        found = {unit.source} & changed
        rows = {c for c in changed if c.endswith(".inc")}
        if rows and (tree / unit.source).exists():
            found |= {c for c in included(tree, unit.source) if c in rows}
        headers = {c for c in changed if c.endswith(".h")} | {c for c in rows if not only_declared(tree, c)}
        if headers:
            found |= headers & self.dependencies.get(unit.output, set())
        return found


@functools.lru_cache(maxsize=None)
def included(tree, source):
    """What a file's own text includes, as paths within the project."""
    names = INCLUDE.findall((tree / source).read_text(encoding="utf-8"))
    near = pathlib.PurePath(source).parent
    return {f"{top}/{n}" for n in names for top in ("src", "tests", str(near))}


@functools.lru_cache(maxsize=None)
def only_declared(tree, rows):
    """Whether headers that include a table of rows do no more than to declare each row: then a row more changes nothing in what
    includes these headers."""
    name = rows.partition("/")[2]
    for header in (tree / "src").rglob("*.h"):
        text = header.read_text(encoding="utf-8")
        at = text.find(f'#include "{name}"')
        if at >= 0 and not re.search(r"#define \w+\([^)]*\) [^\n]*;\n$", text[:at]):
            return False
    return True
