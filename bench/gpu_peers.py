#!/usr/bin/env python3
"""PyTorch beside Assay on a GPU: eager and torch.compile, each captured as one CUDA graph.

    bench/gpu_peers.py FOLDER OUT [MODEL/BATCH/PRECISION ...]

FOLDER holds bench_common.py, the zoo's models as PyTorch modules with seeded weights, and how they are timed (events around a
graph's launch, the median of 50 to 300). One process a model compiles while the others do; a lock lets one at a time use the
GPU for timing. A line of OUT: model, precision, batch, milliseconds of eager, of torch.compile, seconds of compiling, and the most
MB that PyTorch's tensors took at once while it ran as compiled (weights, inputs and what lies between; not the context).
torch.compile runs in its default mode; MODE=max-autotune-no-cudagraphs searches for minutes a model.
"""
import fcntl
import os
import subprocess
import sys
import time

MODELS = ["resnet50", "bert_base_128", "vit_base", "mobilenet_v3_large", "swin_tiny", "convnext_tiny", "efficientnet_b0", "nafnet"]
ROWS = [f"{m}/{b}/fp16" for m in MODELS for b in (1, 8)] + [f"{m}/1/fp32" for m in MODELS]


def timed(bc, run):
    """Milliseconds of `run` as a captured graph, while nobody else times."""
    graph, _ = bc.capture(run)
    with open("/tmp/gpu-peers.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return bc.time_gpu(graph.replay, budget_s=0.3)[0]


def one(model, rows, out):
    import torch
    import bench_common as bc

    torch.backends.cudnn.benchmark = True
    for batch, precision in rows:
        kind = bc.set_precision(precision)
        last = model in bc.CONV
        module = bc.build(model).to("cuda", kind)
        module = module.to(memory_format=torch.channels_last) if last else module
        inputs = bc.inputs(model, batch, dtype=kind, channels_last=last)
        eager = compiled = seconds = memory = float("nan")
        try:
            eager = timed(bc, lambda: module(*inputs))
            begin = time.time()
            torch._dynamo.reset()
            fast = torch.compile(module, dynamic=False, mode=os.environ.get("MODE", "default"))
            with torch.no_grad():
                fast(*inputs)
            torch.cuda.synchronize()
            seconds = time.time() - begin
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            compiled = timed(bc, lambda: fast(*inputs))
            memory = torch.cuda.max_memory_allocated() / 1e6
        except Exception as e:
            print(model, batch, precision, repr(e)[:300], flush=True)
        with open(out, "a") as f:
            f.write(f"{model:20} {precision:5} b{batch:<3} eager {eager:7.3f}  torch.compile {compiled:7.3f}  compiled in {seconds:5.1f} s  {memory:6.0f} MB\n")


def main():
    folder, out, rows = sys.argv[1], sys.argv[2], sys.argv[3:] or ROWS
    sys.path.insert(0, folder)
    os.environ.setdefault("OUT", "/tmp/gpu-peers")
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "4")
    by_model = {}
    for row in rows:
        model, batch, precision = row.split("/")
        by_model.setdefault(model, []).append((int(batch), precision))
    if len(by_model) == 1 and os.environ.get("ONE"):
        model = next(iter(by_model))
        return one(model, by_model[model], out)
    env = dict(os.environ, ONE="1")
    children = [
        subprocess.Popen([sys.executable, __file__, folder, out, *(f"{m}/{b}/{p}" for b, p in todo)], env=env)
        for m, todo in by_model.items()
    ]
    for child in children:
        child.wait()
    with open(out) as f:
        lines = sorted(f)
    with open(out, "w") as f:
        f.writelines(lines)


if __name__ == "__main__":
    main()
