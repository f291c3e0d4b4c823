#!/usr/bin/env python3
"""Completion by shells, and manual pages: test_completion.py ASSAY.

What a shell offers is held against what the help lists, and of the command lines of trtexec and Polygraphy against
the tables of their flags. bash has to be there; zsh, fish, groff and man are
asked where they are.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FILES = ("inner folder/", "model.onnx")  # what lies in the folder

# Words of the command line, the last of them to be completed, and what bash offers.
ROWS = [
    (["che"], {"check"}),
    (["--v"], {"--version"}),
    (["debug", "p"], {"precision", "passes"}),
    (["edit", "qu"], {"quantize"}),
    (["trtexec", "mod"], {"model.onnx"}),
    (["check", "mod"], {"model.onnx"}),
    (["check", "--prec"], {"--precision"}),
    (["check", "--precision", "fp1"], {"fp16"}),
    (["check", "--precision", "=", "bf"], {"bf16"}),
    (["check", "--precision", "="], {"fp64", "fp32", "tf32", "bf16", "fp16", "fp8e4m3", "fp8e4m3fnuz", "fp8e5m2", "fp8e5m2fnuz", "fp8e8m0", "int8"}),
    (["check", "model.onnx", "--target", ""], {"auto", "cpu", "cuda", "emu"}),
    (["check", "model.onnx", "-i", "inner"], {"inner folder"}),
    (["check", "model.onnx", "--seed", ""], set()),
    (["debug", "precision", "model.onnx", "--mode", ""], {"account", "bisect", "linear"}),
    (["run", "--mode", "t"], {"truth"}),
    (["check", "model.onnx", "--fix", ""], {"fewest", "best"}),
    (["debug", "precision", "model.onnx", "--fix", "b"], {"best"}),
    (["inspect", ""], {"model", "data", "plan"}),
    (["inspect", "model", ""], {"model.onnx", "inner folder"}),
    (["completion", ""], {"bash", "zsh", "fish"}),
    (["trtexec", "--onn"], {"--onnx="}),
    (["trtexec", "--onnx", "=", "mod"], {"model.onnx"}),
    (["trtexec", "--sparsity", "="], {"disable", "enable", "force"}),
    (["trtexec", "--sparsity", "=", "en"], {"enable"}),
    (["trtexec", "--duration", "="], set()),
    (["trtexec", "--onnx", "=", "model.onnx", "--bf"], {"--bf16"}),
    (["trtexec", "--v"], {"--verbose", "--versionCompatible", "--vc"}),
    (["polygraphy", ""], {"--help", "run", "convert", "inspect", "check", "surgeon", "debug", "data"}),
    (["polygraphy", "inspect", "t"], {"tactics"}),
    (["polygraphy", "data", ""], {"--help", "concat", "merge"}),
    (["polygraphy", "run", "mod"], {"model.onnx"}),
    (["polygraphy", "inspect", "model", "inner"], {"inner folder"}),
    (["polygraphy", "run", "--precision-c"], {"--precision-constraints"}),
    (["polygraphy", "run", "--precision-constraints", "o"], {"obey"}),
    (["polygraphy", "run", "model.onnx", "--compare", "l2", "co"], {"cosine_similarity"}),
    (["polygraphy", "run", "model.onnx", "--compare-func", "=", "l"], {"l2"}),
    (["polygraphy", "run", "model.onnx", "--load-inputs", "a.json", "mod"], {"model.onnx"}),
    (["polygraphy", "run", "model.onnx", "--load-inputs", "a.json", "--onnxr"], {"--onnxrt"}),
    (["polygraphy", "run", "model.onnx", "--seed", ""], set()),
    (["polygraphy", "debug", "precision", "model.onnx", "-p", ""], {"float32", "float16"}),
    (["polygraphy", "debug", "precision", "model.onnx", "--direction", "f"], {"forward"}),
]
# The same by links to the program: a name, words, what is offered.
LINKS = [
    ("trtexec", ["--onn"], {"--onnx="}), ("/opt/bin/trtexec", ["--onnx", "=", "mod"], {"model.onnx"}),
    ("polygraphy", ["inspect", "t"], {"tactics"}), ("./polygraphy", ["run", "--compare", "snr", "ps"], {"psnr"}),
    ("polygraphy", ["surgeon", "ex"], {"extract"}), ("assay", ["trtexec", "--onn"], {"--onnx="}),
]
SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src" / "frontends"


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, **options)
    return done.returncode, done.stdout, done.stderr


def verbs(assay):
    """All verbs, as lists of one or two words, without other programs' command lines."""
    found = []
    for name, summary in re.findall(r"^  (\S+)  +(.*)$", run(assay, "-h")[1], re.M):
        if "lists them" in summary:
            found += [[name, second] for second in re.findall(r"^  (\S+)  ", run(assay, name, "-h")[1], re.M)]
        elif not summary.startswith("the command line of"):
            found.append([name])
    return found


def options(assay, verb):
    return set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", run(assay, *verb, "-h")[1], re.M))


def offered(flags):
    """The rows of a table of flags that are taken: (words between the first quotes or the id, kind)."""
    text = re.sub(r"^(//|#).*$", "", (SOURCES / flags).read_text(), flags=re.M)
    rows = re.findall(r'_FLAG\((\w+), (?:"([^"]*)", )?(\w+),\s+(\w+)', text)
    return [(names or f"--{name}", kind) for name, names, kind, level in rows if level in ("WORKS", "ACCEPT")]


def fronts(assay):
    """Every command line of trtexec and Polygraphy, with the options that are to be offered."""
    aliases = re.findall(r'\{"(--\w+)", TRT_FLAG_(\w+), NULL\}', (SOURCES / "trtexec/flags.c").read_text())
    rows = offered("trtexec/flags.inc")
    found = [(["trtexec"], {name + ("=" if kind != "SWITCH" else "") for name, kind in rows} | {name for name, _ in aliases} | {"--help"})]
    spellings = {}
    for names, _ in offered("polygraphy/flags.inc"):
        for name in names.split():
            spellings.setdefault(name, []).append({n for n in names.split() if n.startswith("--")})
    for tool, name in re.findall(r'PG_COMMAND\(\w+, "(\w+)", (?:"([\w-]+)"|NULL)', (SOURCES / "polygraphy/commands.inc").read_text()):
        words = ["polygraphy", tool, *([name] if name else [])]
        text = run(assay, *words, "-h")[1]
        first = re.findall(r"^  (--?[\w-]+)", text, re.M)
        ignored = re.search(r"without effect.*?:\n(.*?)\n\n", text, re.S)
        first += ignored.group(1).split() if ignored else []
        # A name may be of two rows, for different subcommands: the help tells of which.
        long = {n for f in first for row in spellings.get(f, []) for n in row if len(spellings[f]) == 1 or n in text}
        found.append((words, long | {"--help"}))
    return found


def bash_offers(script, cases):
    """What bash offers for each list of words, the program's name before them: one bash for all of them."""
    text = f"source {script}\n"
    for words in cases:
        quoted = " ".join("'" + w + "'" for w in words)
        text += f"COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1} COMPREPLY=(); _assay\nprintf '%s\\n' \"${{COMPREPLY[@]}}\" --next--\n"
    code, out, err = run("bash", "--norc", "-u", "-c", text)
    assert code == 0 and not err, err
    return [set(part.split("\n")) - {""} for part in out.split("--next--\n")[:-1]]


def test_bash(assay, folder, wrong):
    script = folder / "assay.bash"
    script.write_text(run(assay, "completion", "bash")[1])
    cases, wanted = [words for words, _ in ROWS], [offered for _, offered in ROWS]
    for verb in verbs(assay):
        cases.append([*verb, "--"])
        wanted.append(options(assay, verb))
        if len(wanted[-1]) < 1:
            wrong.append(f"{verb}: the help lists no options")
    for words, want in fronts(assay):
        cases.append([*words, "--"])
        wanted.append(want)
        if len(want) < 5:
            wrong.append(f"{words}: the tables have no flags")
    cases = [["assay", *words] for words in cases] + [[name, *words] for name, words, _ in LINKS]
    wanted += [offered for _, _, offered in LINKS]
    for words, want, got in zip(cases, wanted, bash_offers(script, cases)):
        if got != want:
            wrong.append(f"bash: {words}: offers {sorted(got)}, not {sorted(want)}; too many {sorted(got - want)}, missing {sorted(want - got)}")
    # By the key, in a shell that runs: the word is completed and its space set.
    code, out, _ = run("script", "-qec", f"bash --norc --noprofile -i", "/dev/null", env={**os.environ, "TERM": "dumb", "PS1": ""},
                       input=f"source {script}; assay() {{ echo \"got:$1:$2:\"; }}; trtexec() {{ assay \"$@\"; }}\n"
                             "assay debug env\t--comp\t\ntrtexec --onn\tmod\t--bf\t\nexit\n") \
        if shutil.which("script") else (0, "got:debug:environment: got:--onnx=model.onnx:--bf16:", "")
    if "got:debug:environment:" not in out or "got:--onnx=model.onnx:--bf16:" not in out:
        wrong.append(f"bash by the key: {out!r}")


def test_others(assay, folder, wrong):
    for shell, check in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
        script = folder / f"assay.{shell}"
        script.write_text(run(assay, "completion", shell)[1])
        for verb in verbs(assay):
            for option in options(assay, verb) - {"--help"}:
                if (f"'{option}" not in script.read_text() and f"'*{option}" not in script.read_text()) if shell == "zsh" \
                        else f" -l {option[2:]}" not in script.read_text():
                    wrong.append(f"{shell}: {verb} {option} is not in the script")
        for words, wanted in fronts(assay):
            for option in wanted - {"--help"}:
                name = option.rstrip("=")
                if (f"'{name}" not in script.read_text() and f"'*{name}" not in script.read_text()) if shell == "zsh" \
                        else f"__assay_in {' '.join(words)}' -l {name[2:]} " not in script.read_text():
                    wrong.append(f"{shell}: {words} {option} is not in the script")
        if not shutil.which(shell):
            print(f"no {shell} here: its script is not run")
            continue
        code, out, err = run(shell, *check, script)
        if code or err:
            wrong.append(f"{shell}: {err}")
    if shutil.which("fish"):
        for line, want in (("assay debug env", "environment"), ("assay check --prec", "--precision"),
                           ("assay debug precision x --mode bi", "bisect"), ("assay check --target ", "cpu"),
                           ("assay trtexec --onn", "--onnx"), ("assay trtexec --sparsity=", "--sparsity=force"), ("trtexec --bf", "--bf16"),
                           ("assay polygraphy ins", "inspect"), ("polygraphy inspect ta", "tactics"),
                           ("polygraphy run --compare l2 co", "cosine_similarity"),
                           ("polygraphy run x --precision-constraints ", "obey"), ("assay polygraphy debug precision --dir ", "reverse")):
            out = run("fish", "--no-config", "-c", f"source {folder}/assay.fish; complete -C '{line}'")[1]
            if want not in re.findall(r"^[^\t\n]+", out, re.M):
                wrong.append(f"fish: '{line}': {out!r}")


def test_manual(assay, folder, wrong):
    pages = folder / "man1"
    pages.mkdir()
    code, out, err = run(assay, "man", "-o", pages)
    names = {"assay.1"} | {f"assay-{'-'.join(v)}.1" for v in verbs(assay)}
    if code or out or err or {p.name for p in pages.iterdir()} != names:
        wrong.append(f"man -o: {code}, {err!r}, {sorted(p.name for p in pages.iterdir())}")
    for verb in [[], *verbs(assay)]:
        page = pages / f"{'-'.join(['assay', *verb])}.1"
        code, out, err = run(assay, "man", *verb)
        if code or err or out != page.read_text():
            wrong.append(f"man {verb}: {code}, {err!r}, other text than with -o")
        if verb and any(o.replace("-", "\\-") not in out for o in options(assay, verb)):
            wrong.append(f"man {verb}: lacks an option")
        if shutil.which("groff"):
            code, shown, err = run("groff", "-ww", "-Tascii", "-man", "-P-cbou", page)
            if code or err:
                wrong.append(f"groff, {page.name}: {err}")
            examples = run(assay, *verb, "-h")[1].partition("\nExamples:\n")[2].split()
            if not set(examples) <= set(shown.split()):
                wrong.append(f"groff, {page.name}: the examples are not as in the help: {set(examples) - set(shown.split())}")
        if shutil.which("man") and run("man", "--version")[0] == 0:
            code, _, err = run("man", "--warnings", "-l", page, env={**os.environ, "LC_ALL": "C", "MANPAGER": "cat"})
            if code or err:
                wrong.append(f"man, {page.name}: {code}, {err}")


def test_marks(assay, wrong):
    """Marks in help ({look}: the targets) are replaced wherever it is shown."""
    texts = {f"{' '.join(verb)} -h": run(assay, *verb, "-h")[1] for verb in verbs(assay)}
    texts.update({f"man {' '.join(verb)}": run(assay, "man", *verb)[1] for verb in verbs(assay)})
    texts.update({f"completion {shell}": run(assay, "completion", shell)[1] for shell in ("bash", "zsh", "fish")})
    marks = re.findall(r'"(\{\w+\})"', (SOURCES.parent / "cli/help_text.c").read_text())
    if len(marks) < 3:
        wrong.append(f"marks of help_text.c: {marks}")
    wrong += [f"{name}: {mark} is not replaced" for name, text in texts.items() for mark in marks if mark in text]
    for name in ("check -h", "man check", "completion zsh"):
        if "npz" not in texts[name]:
            wrong.append(f"{name}: the formats are not listed")


def test_errors(assay, wrong):
    for words, pattern in ((["completion", "csh"], "'csh' is not a shell that is known: bash, zsh, fish"), (["completion"], "SHELL is missing"),
                           (["man", "frobnicate"], "there is no verb 'frobnicate'"), (["man", "debug"], "there is no verb 'debug'"),
                           (["man", "debug", "x" * 100], "there is no verb 'debug x+'"),
                           (["man", "check", "-o", "."], "takes the pages of all verbs")):
        code, out, err = run(assay, *words)
        if code != 2 or out or not re.search(pattern, err):
            wrong.append(f"{words}: {code}, {out!r}, {err!r}")
    pathlib.Path("file").touch()
    code, _, err = run(assay, "man", "-o", "file/here")
    if code != 4 or "'file/here' cannot be written" not in err:
        wrong.append(f"man -o file/here: {code}, {err!r}")


def main(assay):
    assay, wrong = pathlib.Path(assay).resolve(), []
    with tempfile.TemporaryDirectory() as scripts, tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in FILES:
            pathlib.Path(name).mkdir() if name.endswith("/") else pathlib.Path(name).touch()
        test_bash(assay, pathlib.Path(scripts), wrong)
        test_others(assay, pathlib.Path(scripts), wrong)
        test_manual(assay, pathlib.Path(scripts), wrong)
        test_marks(assay, wrong)
        test_errors(assay, wrong)
        os.chdir("/")
    print("\n".join(wrong))
    print(f"{len(ROWS)} rows, {len(wrong)} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
