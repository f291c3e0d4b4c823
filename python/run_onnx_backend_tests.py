#!/usr/bin/env python3
"""Runs the official onnx.backend.test suite over Assay's backend; models that need a download are left out.

    run_onnx_backend_tests.py [--match REGEX]
"""
import argparse
import os
import re
import sys
import unittest
import warnings

import onnx.backend.test

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import assay.backend  # noqa: E402


def cases(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases(item)
        else:
            yield item


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--match", help="only the cases whose name this regular expression finds")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    test = onnx.backend.test.BackendTest(assay.backend, __name__)
    test.exclude("_cuda$")
    # One draw of a random operator: another generator cannot repeat it.
    test.exclude("^test_(bernoulli|training_dropout)")
    # Those of the real models are downloaded, but for the light ones that are in the package.
    suite = unittest.TestSuite(
        case for case in cases(test.test_suite)
        if "OnnxBackendRealModel" not in type(case).__name__ or "light" in case.id()
        if not args.match or re.search(args.match, case.id()))
    result = unittest.TextTestRunner(verbosity=0, stream=open(os.devnull, "w")).run(suite)
    for case, trace in result.failures + result.errors:
        print("FAIL %s: %s" % (case.id().split(".")[-1], trace.strip().split("\n")[-1]))
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    print("%d passed, %d failed, %d skipped" % (result.testsRun - failed - skipped, failed, skipped))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
