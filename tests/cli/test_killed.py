#!/usr/bin/env python3
"""A build or a refit that is killed leaves the old file or the new one of its plan and its timing cache, and nothing
else: where the file was new, nothing at all beside it; where it was to replace one, at most the whole new file under
its second name (.assay-part), which the next write of that file removes.

    test_killed.py ASSAY MODELS [TIMES]
"""
import os
import random
import subprocess
import sys
import tempfile
import time

SECOND = ".assay-part"


class Failure(Exception):
    pass


def run(*line):
    r = subprocess.run(line, capture_output=True, text=True)
    if r.returncode:
        raise Failure(f"{' '.join(line)}: exit code {r.returncode}, {r.stderr}")


def kill_one(program, model, line, seconds):
    """Kills a command that writes; then what is there must be whole, and nothing else be there. Whether it had ended."""
    before = set(os.listdir("."))
    child = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    child.kill()
    ended = child.wait() == 0
    left = set(os.listdir(".")) - before - {"model.plan", "times.txt"}
    if left - {f + SECOND for f in before}:
        raise Failure(f"left behind: {sorted(left)}; there before: {sorted(before)}")
    for plan in {"model.plan", "model.plan" + SECOND} & set(os.listdir(".")):
        run(program, "run", plan)
    for times in {"times.txt", "times.txt" + SECOND} & set(os.listdir(".")):
        run(program, "build", model, "-o", "other.plan", "--timing-cache", times)
        os.remove("other.plan")
    if left:
        if os.path.exists("times.txt"):
            os.remove("times.txt")  # so that it is written
        run(program, "build", model, "-o", "model.plan", "--timing-cache", "times.txt")
        if set(os.listdir(".")) != {"model.plan", "times.txt"}:
            raise Failure(f"still there after the next build: {sorted(os.listdir('.'))}")
    return ended


def main(program, models, times="40"):
    model = os.path.join(os.path.abspath(models), "transformer", "model.onnx")
    program, seed = os.path.abspath(program), 7
    rng = random.Random(seed)
    build = [program, "build", model, "-o", "model.plan", "--timing-cache", "times.txt"]
    refit = [program, "refit", "model.plan", "--weights", model]
    done = i = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            start = time.monotonic()
            run(*build)
            whole = time.monotonic() - start
            for i in range(int(times)):
                # By turns: a new plan and a new cache, a refit, a new cache, a refit.
                if i % 4 == 0 and os.path.exists("model.plan"):
                    os.remove("model.plan")
                if i % 2 == 0 and os.path.exists("times.txt"):
                    os.remove("times.txt")
                elif not os.path.exists("model.plan"):
                    run(*build)
                done += kill_one(program, model, refit if i % 2 else build, rng.uniform(0, 1.2 * whole))
        except Failure as e:
            print(f"seed {seed}, kill {i}: {e}")
            return 1
        finally:
            os.chdir("/")
    print(f"{times} builds killed, {done} had ended before; plans and caches whole")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
