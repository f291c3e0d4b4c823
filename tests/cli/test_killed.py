#!/usr/bin/env python3
"""A build or a refit that is killed leaves the old plan or the new one, a timing cache that can be read, and nothing
else, but for a whole file under a second name (.assay-part), which the next build removes.

    test_killed.py ASSAY MODELS [TIMES]
"""
import os
import random
import subprocess
import sys
import tempfile
import time


def main(program, models, times="40"):
    model = os.path.join(os.path.abspath(models), "transformer", "model.onnx")
    program, seed = os.path.abspath(program), 7
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        build = [program, "build", model, "-o", "model.plan", "--timing-cache", "times.txt"]
        refit = [program, "refit", "model.plan", "--weights", model]
        start = time.monotonic()
        subprocess.run(build, check=True, capture_output=True)
        whole = time.monotonic() - start
        done = 0
        for i in range(int(times)):
            if i % 4 == 0 and os.path.exists("times.txt"):
                os.remove("times.txt")  # so that it is written again
            child = subprocess.Popen(refit if i % 2 else build, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0, 1.2 * whole))
            child.kill()
            done += child.wait() == 0
            for line in ([program, "run", "model.plan"], build[:-3] + ["other.plan", "--timing-cache", "times.txt"]):
                r = subprocess.run(line, capture_output=True, text=True)
                if r.returncode:
                    print(f"seed {seed}, kill {i}: {' '.join(line)}: exit code {r.returncode}, {r.stderr}")
                    return 1
            mine = {"model.plan", "other.plan", "times.txt"}
            left = set(os.listdir(".")) - mine
            if left == {"model.plan.assay-part"}:  # killed between the two names: the next build takes it away
                subprocess.run(build, check=True, capture_output=True)
                left = set(os.listdir(".")) - mine
            if left:
                print(f"seed {seed}, kill {i}: left behind: {sorted(left)}")
                return 1
        os.chdir("/")
    print(f"{times} builds killed, {done} had ended before; plans and caches whole")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
