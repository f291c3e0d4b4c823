#!/usr/bin/env python3
"""A check of many images on a Ray cluster of two raylets of this machine: that it finds what one machine finds, to the bit, also
after a worker and the driver were killed with SIGKILL, and how long that takes.

    build/venv-ray/bin/python bench/ray_check.py MODEL --images N [--shard K] [--precision P]

PYTHONPATH and ASSAY_LIBRARY say which Assay. Images are seeded normal numbers in the shape that the model declares; open
dimensions are 1. Prints a table of Markdown for bench/results.
"""
import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

DRIVER = """
import sys, ray, assay.ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="warning")
assay.ray.check(sys.argv[2], sys.argv[3], precision=sys.argv[4], fix=None, shard=int(sys.argv[5]), folder=sys.argv[6])
"""


def write_images(assay, model, folder, n):
    info = assay.load(model).inputs[0]
    shape = [d if isinstance(d, int) else 1 for d in info.shape]
    for i in range(n):
        np.savez(folder / ("%05d.npz" % i), **{info.name: np.random.default_rng(i).standard_normal(shape).astype(np.float32)})


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


def killed(cluster, arguments, folder, shards):
    """A driver whose worker is killed after a fourth of the shards, and itself after half of them; the seconds till then."""
    parts, start = folder / "parts", time.time()
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, cluster.address, *map(str, arguments), str(folder)])
    pids = []
    while driver.poll() is None and len(list(parts.glob("*"))) < max(1, shards // 2):
        if not pids and len(list(parts.glob("*"))) >= max(1, shards // 4):
            pids = list(workers(raylets(cluster)))[:1]
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    return time.time() - start, bool(pids)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("--images", type=int, default=512)
    p.add_argument("--shard", type=int, default=2)
    p.add_argument("--precision", default="bf16")
    a = p.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    import assay
    import assay.ray
    with tempfile.TemporaryDirectory() as top:
        images, run = pathlib.Path(top, "images"), pathlib.Path(top, "run")
        images.mkdir()
        write_images(assay, a.model, images, a.images)
        start = time.time()
        whole = assay.check(a.model, precision=a.precision, inputs=[str(f) for f in sorted(images.iterdir())], pictures=False, fix=None)
        rows = [("one process, all cores", time.time() - start, "")]
        nodes = {"num_cpus": 1, "object_store_memory": 100 << 20}
        cluster = Cluster(initialize_head=True, head_node_args={**nodes, "include_dashboard": False})
        cluster.add_node(**nodes)
        try:
            shards = -(-a.images // a.shard)
            seconds, worker = killed(cluster, (a.model, images, a.precision, a.shard), run, shards)
            done = len(list((run / "parts").glob("*[0-9a-f]")))
            rows.append(("Ray, until its driver was killed (a worker before: %s)" % ("yes" if worker else "no"), seconds,
                         "%d of %d shards kept" % (done, shards)))
            ray.init(address=cluster.address, log_to_driver=False, logging_level="warning")
            start = time.time()
            found = assay.ray.check(a.model, images, precision=a.precision, fix=None, shard=a.shard, folder=run)
            rows.append(("Ray, the same call again", time.time() - start, "the same bits" if found.json == whole.json else "OTHER BITS"))
        finally:
            ray.shutdown()
            cluster.shutdown()
    print("| %s, %d images, %s | seconds | |\n| --- | --- | --- |" % (os.path.basename(a.model), a.images, a.precision))
    for row in rows:
        print("| %s | %.1f | %s |" % row)
    return 0 if found.json == whole.json else 1


if __name__ == "__main__":
    sys.exit(main())
