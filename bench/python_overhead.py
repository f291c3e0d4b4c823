#!/usr/bin/env python3
"""What a call of Context.run costs over the engine itself, and threads beside processes.

    ASSAY_LIBRARY=... PYTHONPATH=python build/venv/bin/python bench/python_overhead.py ASSAY MODEL...

Each model is timed by `assay bench` and in this process in turns, one thread each. In this process calls of Context.run alternate with calls
of the C function that it calls, in the same context: the figure is the difference of their medians. The fastest round's medians are shown,
and the median of the rounds' differences. Processes differ in speed by more than what is to be measured: the program's time is shown beside.

Then each model is run by 8 threads with a context each, and by 8 processes, for the same time in turns.
"""
import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import tempfile
import threading
import time

import numpy as np

import assay


def inputs_of(engine):
    draw = np.random.default_rng(0)
    return {i.name: draw.standard_normal([d if isinstance(d, int) else 1 for d in i.shape]).astype(i.dtype) for i in engine.inputs}


def program_us(program, plan, seconds):
    """The median of a run by the program, in microseconds."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([program, "bench", plan, "--threads", "1", "--seconds", str(seconds), "--json", out.name], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        report = json.load(open(out.name, encoding="utf-8"))
    return 1e3 * float(report["median_ms"])


def python_us(context, inputs, seconds):
    """The medians of Context.run and of the C function alone, which take turns, in microseconds."""
    bare, handle = assay.context.lib.assay_context_run, context._c
    calls = (lambda: context.run(inputs)), (lambda: bare(handle))
    times, clock, round_ = ([], []), time.perf_counter, 0
    end = clock() + seconds
    while clock() < end:
        for k in ((0, 1), (1, 0))[round_ % 2]:
            begin = clock()
            result = calls[k]()  # kept until the next call has ended, as users do
            times[k].append(clock() - begin)
        round_ += 1
    del result
    return [1e6 * statistics.median(t) for t in times]


def count(plan, seconds, gate, out):
    """Runs in a thread or a process of its own; how many it made."""
    context = assay.Engine.load(plan).context(threads=1) if isinstance(plan, str) else plan.context(threads=1)
    inputs = inputs_of(assay.Engine.load(plan) if isinstance(plan, str) else plan)
    for _ in range(20):
        context.run(inputs)
    gate.wait()
    n, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        context.run(inputs)
        n += 1
    out.put(n)


def together(kind, plan, seconds, n=8):
    """Runs a second of n threads with a context each, or of n processes."""
    if kind == "threads":
        import queue
        gate, out, make, what = threading.Barrier(n), queue.SimpleQueue(), threading.Thread, assay.Engine.load(plan)
    else:
        spawn = multiprocessing.get_context("spawn")
        gate, out, make, what = spawn.Barrier(n), spawn.SimpleQueue(), spawn.Process, plan
    workers = [make(target=count, args=(what, seconds, gate, out)) for _ in range(n)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return sum(out.get() for _ in workers) / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    print("| model | assay bench, us | the C function, us | Context.run, us | difference, us |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        plans = []
        for k, model in enumerate(args.models):
            plans.append(os.path.join(folder, "%d.plan" % k))
            assay.build(model).save(plans[-1])
            engine = assay.Engine.load(plans[-1])
            inputs = inputs_of(engine)
            if len(inputs) == 1:
                inputs = next(iter(inputs.values()))
            with engine.context(threads=1) as context:
                context.run(inputs)
                each = [(program_us(args.program, plans[-1], args.seconds), *python_us(context, inputs, args.seconds))
                        for _ in range(args.rounds)]
            best = [min(t[i] for t in each) for i in range(3)]
            print("| %s | %.1f | %.1f | %.1f | %.1f |" % (os.path.basename(model), best[0], best[2], best[1],
                                                          statistics.median(t[1] - t[2] for t in each)), flush=True)
        for plan, model in zip(plans, args.models):
            rates = {kind: [] for kind in ("threads", "processes")}
            for _ in range(args.rounds):
                for kind, seen in rates.items():
                    seen.append(together(kind, plan, args.seconds))
            threads, processes = (statistics.median(r) for r in rates.values())
            print("\n%s: 8 threads %.0f runs/s, 8 processes %.0f: %+.1f %%" % (os.path.basename(model), threads, processes, 100 * (threads / processes - 1)))


if __name__ == "__main__":
    main()
