"""Clients of bench/serving.py, in a process of their own: asks a server for SECONDS, or REQUESTS times, from many threads,
and prints JSON: {"requests", "seconds", "cpu_ms", "wrong", "failed", "latency_ms"}.

    serving_client.py http|grpc ADDRESS MODEL SAMPLES.npz CLIENTS --seconds S | --requests N [--json]

SAMPLES.npz: x, a sample a row, and y, what each must give to the bit (left out: not compared). Each request has one row.
"""
import argparse
import json
import resource
import statistics
import threading
import time

import numpy as np


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("http", "grpc"))
    for name in ("address", "model", "samples"):
        parser.add_argument(name)
    parser.add_argument("clients", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--requests", type=int)
    parser.add_argument("--json", action="store_true", help="elements in JSON, for servers without binary tensors")
    args = parser.parse_args()
    if args.kind == "http":
        import tritonclient.http as module
    else:
        import tritonclient.grpc as module
    with np.load(args.samples) as saved:
        x, y = saved["x"], saved["y"] if "y" in saved else None
        names = [str(n) for n in saved["names"]]
    lock, state, times = threading.Lock(), {"next": 0, "wrong": 0, "failed": 0}, []

    def work():
        client = module.InferenceServerClient(args.address) if args.kind == "grpc" else module.InferenceServerClient(
            args.address, network_timeout=300, connection_timeout=300)
        options = {"binary_data": False} if args.json else {}
        wanted = [module.InferRequestedOutput(names[1], **options)]
        while True:
            with lock:
                n = state["next"]
                if time.perf_counter() >= end or args.requests and n >= args.requests:
                    return
                state["next"] += 1
            at = n % len(x)
            given = module.InferInput(names[0], list(x[at:at + 1].shape), "FP32")
            given.set_data_from_numpy(x[at:at + 1], **options)
            began = time.perf_counter()
            try:
                got = client.infer(args.model, [given], outputs=wanted).as_numpy(names[1])
            except Exception as e:  # counted, and the first one shown
                with lock:
                    state["failed"] += 1
                    state.setdefault("error", str(e)[:300])
                continue
            times.append(time.perf_counter() - began)
            if y is not None and got.tobytes() != y[at:at + 1].tobytes():
                state["wrong"] += 1

    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    end = start + args.seconds if args.seconds else float("inf")
    threads = [threading.Thread(target=work) for _ in range(args.clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"requests": len(times), "seconds": time.perf_counter() - start, "wrong": state["wrong"],
                      "failed": state["failed"], "error": state.get("error"),
                      "cpu_ms": 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime),
                      "latency_ms": 1e3 * statistics.median(times) if times else None}))


if __name__ == "__main__":
    main()
