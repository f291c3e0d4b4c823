#!/usr/bin/env python3
"""A check or a tuning of many samples on a Ray cluster of two raylets of this machine: that it finds what one process finds, to the bit,
also after a worker and the driver were killed with SIGKILL, and how long that takes.

    build/venv-ray/bin/python bench/ray_check.py MODEL --images N [--shard K] [--precision P]
    build/venv-ray/bin/python bench/ray_check.py MODEL --tune --inputs IN.npz [--golden OUT.npz] [--int8 CALIB.npz] --require R

PYTHONPATH and ASSAY_LIBRARY say which Assay. Without --inputs images are seeded normal numbers in the shape that the model declares, open
dimensions 1. With --int8 the model is also tuned as assay.quantize makes it. Prints a table of Markdown for bench/results.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import numpy as np  # noqa: E402
import ray  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

import assay  # noqa: E402
import assay.ray  # noqa: E402

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}  # of each raylet
DRIVER = """
import json, sys, ray, assay.ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="error")
verb, models, data, options = json.loads(sys.argv[2])
getattr(assay.ray, verb)(models, data, **options)
"""


# ---- samples ------------------------------------------------------------------------------------


def drawn(model, n):
    """Samples of the first input, from seeds."""
    info = model.inputs[0]
    shape = [d if isinstance(d, int) else 1 for d in info.shape]
    return [{info.name: np.random.default_rng(i).standard_normal(shape).astype(np.float32)} for i in range(n)]


def rows(file, names):
    """A sample for each row of the arrays of a file that have these names; other arrays are left out."""
    arrays = {name: array for name, array in np.load(file).items() if name in names}
    if not arrays:
        sys.exit("%s has none of %s" % (file, ", ".join(names)))
    return [{name: array[i:i + 1] for name, array in arrays.items()} for i in range(len(next(iter(arrays.values()))))]


def write(folder, samples):
    """A file for each sample, in their order."""
    folder.mkdir()
    for i, sample in enumerate(samples):
        np.savez(folder / ("%05d.npz" % i), **sample)
    return [str(f) for f in sorted(folder.iterdir())]


# ---- runs that are killed -----------------------------------------------------------------------


def workers(tree):
    """Ids of workers below these processes that have a shard."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            title, stat = (entry / "cmdline").read_bytes(), (entry / "stat").read_text()
        except OSError:
            continue
        if title.startswith(b"ray::_run") and int(stat.rsplit(")", 1)[1].split()[1]) in tree:
            yield int(entry.name)


def raylets(cluster):
    return [info.process.pid for node in cluster.list_all_nodes() for info in node.all_processes.get("raylet", [])]


def finished(folder):
    """How many parts are in a run's folder."""
    return len(list((folder / "parts").glob("*[0-9a-f]")))


def killed(cluster, call, folder, parts):
    """A driver whose worker is killed after a fourth of the parts, and itself after half of them; the seconds till then."""
    start, pids = time.time(), []
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, cluster.address, json.dumps(call)])
    while driver.poll() is None and finished(folder) < max(1, parts // 2):
        if not pids and finished(folder) >= max(1, parts // 4):
            pids = list(workers(raylets(cluster)))[:1]
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
    if driver.poll() is not None:
        sys.exit("the driver ended by itself, with %d of %d parts" % (finished(folder), parts))
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    return time.time() - start, "%d of %d parts kept; a worker was killed before: %s" % (
        finished(folder), parts, "yes" if pids else "no")


def on_cluster(verb, models, data, options, folder, parts):
    """What the cluster finds after the kills, and rows of the table."""
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    cluster.add_node(**NODE)
    options = {**options, "folder": str(folder)}
    try:
        seconds, kept = killed(cluster, (verb, models, data, options), folder, parts)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        start = time.time()
        found = getattr(assay.ray, verb)(models, data, **options)
        return found, [("Ray, until its driver was killed", seconds, kept), ("Ray, the same call again", time.time() - start, "")]
    finally:
        ray.shutdown()
        cluster.shutdown()


# ---- what was found -----------------------------------------------------------------------------


def written(result, folder, target):
    """The bytes of a tuning's files. A plan's kernels are chosen by time, but for emu, which has one of each."""
    files = {"model": result.write_model, "options": result.write_options}
    if target == "emu":
        files["plan"] = result.write_plan
    for name, write_file in files.items():
        write_file(folder / name)
    return [(folder / name).read_bytes() for name in files]


def contents(result, folder, target):
    """All of a result that does not depend on the clock: its JSON but for how long the search took, and the files it writes."""
    text = re.sub(r'(?m)^ "seconds": [^\n]*\n', "", result.json)
    return [text, *(written(result, folder, target) if getattr(result, "met", False) else [])]


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    p.add_argument("model")
    p.add_argument("--tune", action="store_true", help="tune, rather than check")
    p.add_argument("--images", type=int, default=512, help="how many are drawn")
    p.add_argument("--inputs", help="npz: arrays by the names of inputs, a sample a row")
    p.add_argument("--golden", help="npz: arrays by the names of outputs, a sample a row")
    p.add_argument("--int8", metavar="CALIB", help="npz as --inputs: tune the model quantized with its ranges, too")
    p.add_argument("--precision", default="bf16", help="a format; of a tuning several, with commas")
    p.add_argument("--target", default="emu")
    p.add_argument("--require", action="append")
    p.add_argument("--shard", type=int, default=2)
    return p.parse_args()


def main():
    a = arguments()
    verb, options = ("tune" if a.tune else "check"), {"precision": a.precision, "target": a.target, "require": a.require}
    options.update({"precision": a.precision.split(","), "device": "generic"} if a.tune else {"fix": None})
    loaded = assay.load(a.model)
    with tempfile.TemporaryDirectory() as top:
        top = pathlib.Path(top)
        samples = rows(a.inputs, [i.name for i in loaded.inputs]) if a.inputs else drawn(loaded, a.images)
        data, models = write(top / "inputs", samples), [os.path.abspath(a.model)]
        if a.golden:
            options["golden"] = write(top / "golden", rows(a.golden, [o.name for o in loaded.outputs]))
        if a.int8:
            models.append(str(top / "int8.onnx"))
            assay.quantize(a.model, inputs=rows(a.int8, [i.name for i in loaded.inputs])).write_model(models[-1])
        one = {} if a.tune else {"pictures": False}
        start = time.time()
        whole = [getattr(assay, verb)(m, inputs=data, **one, **options) for m in models]
        table = [("one process, all cores", time.time() - start, "")]
        runs = sum(len(r.assignments) for r in whole) if a.tune else len(models)
        found, more = on_cluster(verb, models, data, {**options, "shard": a.shard}, top / "run",
                                 runs * -(-len(data) // a.shard))
        alike = [contents(f, top, a.target) == contents(w, top, a.target) for f, w in zip(found, whole)]
    print("| %s, %d samples, %s | seconds | |\n| --- | --- | --- |" % (os.path.basename(a.model), len(data), a.precision))
    for row in table + more:
        print("| %s | %.1f | %s |" % row)
    for model, result, same in zip(models, found, alike):
        verdict = result.text.splitlines()[0].replace(model, os.path.basename(model))
        print("\n%s: %s%s" % ("the same bits" if same else "OTHER BITS", verdict,
                              ", of %d assignments" % len(result.assignments) if a.tune else ""))
    return 0 if all(alike) else 1


if __name__ == "__main__":
    sys.exit(main())
