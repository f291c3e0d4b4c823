#!/usr/bin/env python3
"""Checks the models of one framework, and prints rows of a table: run.py torch|keras|huggingface [PRECISION]."""
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["HF_HUB_OFFLINE"] = "1"

import assay


def cases(framework, precision):
    """(name, function that checks it: {part: FrameworkCheck})."""
    if framework == "torch":
        import torch
        from torch_models import MODELS

        def one(make, exporter):
            torch.manual_seed(1)
            return {"": assay.check_torch(*make(), exporter=exporter, precision=precision)}

        for name, make in MODELS:
            for exporter in ("dynamo", "torchscript"):
                yield f"{name}, {exporter}", lambda: one(make, exporter)
    elif framework == "keras":
        import keras
        from keras_models import MODELS

        def two(make):
            keras.utils.set_random_seed(1)
            return {"": assay.check_keras(*make(), precision=precision)}

        for name, make in MODELS:
            yield name, lambda: two(make)
    elif framework == "huggingface":
        import torch
        from huggingface_models import MODELS

        def three(make, task):
            torch.manual_seed(1)
            return assay.check_huggingface(make(), task=task, precision=precision)

        for name, make, task in MODELS:
            yield name, lambda: three(make, task)
    else:
        sys.exit(__doc__)


def main(framework, precision="fp16"):
    print("| model | nodes | inner values | export | engine | s, export | s, check |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name, check in cases(framework, precision):
        try:
            results = check()
        except assay.ExportError as error:
            print(f"| {name} | | | cannot: {str(error).split('): ')[-1][:110].replace('|', '/')} | | | |")
            continue
        for part, result in results.items():
            title = f"{name}: {part}" if len(results) > 1 else name
            export = "faithful" if result.export_faithful else "**differs**"
            engine = "faithful" if result.engine_faithful else f"blames {result.check.blame}"
            if not result.engine_faithful and result.check.culprits:
                engine += f": {result.check.culprits[0].why}"
            print(f"| {title} | {len(result.export.proto.graph.node)} | {len(result.export.inner[0])} | {export} | {engine} | "
                  f"{result.seconds['export']:.2f} | {result.seconds['check']:.2f} |", flush=True)


if __name__ == "__main__":
    start = time.time()
    main(*sys.argv[1:])
    print(f"\n{time.time() - start:.0f} s in all")
