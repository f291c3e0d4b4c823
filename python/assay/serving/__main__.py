"""python -m assay.serving MODEL...: serves models by HTTP and gRPC, in MLServer."""
from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Dict, List, Optional, Tuple

from ..errors import AssayError
from .settings import MIB, Settings


def _arguments(given: Optional[List[str]]) -> Any:
    parser = argparse.ArgumentParser("python -m assay.serving", description="Serve models by the Open Inference Protocol "
                                     "(v2), over HTTP and gRPC, in MLServer.")
    parser.add_argument("models", nargs="+", metavar="[NAME=]MODEL", help="an ONNX model, a plan, or a folder with "
                        "model.plan or model.onnx; NAME: default its file's or folder's; NAME:VERSION=MODEL, too")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default: %(default)s)")
    parser.add_argument("--http-port", type=int, default=8080, metavar="N", help="default: %(default)s")
    parser.add_argument("--grpc-port", type=int, default=8081, metavar="N", help="default: %(default)s")
    parser.add_argument("--metrics-port", type=int, default=8082, metavar="N", help="default: %(default)s")
    parser.add_argument("--instances", type=int, metavar="N", help="contexts of each model (default: 1)")
    parser.add_argument("--threads", type=int, metavar="N", help="of each run (default: all cores, divided)")
    parser.add_argument("--max-batch", type=int, metavar="N", help="rows run together (default: as the plan's profile "
                        "says, else 8)")
    parser.add_argument("--max-delay-ms", type=float, metavar="MS", help="that a request waits for others (default: 1)")
    parser.add_argument("--max-queue", type=int, metavar="N", help="requests that wait (default: 256)")
    parser.add_argument("--timeout-ms", type=float, metavar="MS", help="of a request (default: 60000)")
    parser.add_argument("--max-request-mib", type=int, metavar="N", help="of a request's body (default: 64)")
    parser.add_argument("--drain-s", type=float, metavar="S", help="for what runs at the end (default: 30)")
    parser.add_argument("--precision", metavar="FORMAT", help="of ONNX models: fp32 (default), bf16, fp16, int8")
    parser.add_argument("--settings", metavar="FILE", help="JSON with any of assay.serving.Settings; options go first")
    return parser.parse_args(given)


def settings_of(args: Any) -> Dict[str, Any]:
    """A settings dict of a command line. Errors: OSError, ValueError."""
    settings: Dict[str, Any] = {}
    if args.settings:
        with open(args.settings, encoding="utf-8") as f:
            settings = json.load(f)
        if not isinstance(settings, dict):
            raise ValueError("'%s' does not hold a JSON object" % args.settings)
    for name in ("instances", "threads", "max_batch", "max_delay_ms", "max_queue", "timeout_ms", "drain_s"):
        if getattr(args, name) is not None:
            settings[name] = getattr(args, name)
    if args.max_request_mib is not None:
        settings["max_request_bytes"] = args.max_request_mib * MIB
    if args.precision:
        settings["build"] = {**settings.get("build", {}), "precision": args.precision}
    return settings


def named(text: str) -> Tuple[str, str, str]:
    """Name, version and path of "[NAME[:VERSION]=]MODEL"."""
    name, equals, path = text.partition("=")
    if not equals or os.path.exists(text):
        base = os.path.basename(os.path.abspath(text))
        return (base if os.path.isdir(text) else os.path.splitext(base)[0]), "1", text
    name, _, version = name.partition(":")
    return name, version or "1", path


def main(given: Optional[List[str]] = None) -> int:
    """Returns the exit code: 2 usage, 3 a model that cannot be served."""
    args = _arguments(given)
    try:
        settings = settings_of(args)
        Settings.of(settings)
        from ._mlserver_start import serve
        return serve([named(m) for m in args.models], settings, args)
    except ImportError as e:
        print("error: %s" % e, file=sys.stderr)
        return 2
    except (AssayError, OSError, ValueError) as e:
        print("error: %s" % e, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
