#!/usr/bin/env python3
"""The command line: exit codes, messages of one line, help, and JSON that any reader takes.

    test_cli.py ASSAY MODELS

MODELS is tests/models/small. A row says what is run, the exit code, and patterns of what is printed.
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper

FAITHFUL, UNFAITHFUL, USAGE, INPUT, FAILED = range(5)
RANDOM = "assay: no inputs given: random ones are used"
VERBS = ("check", "run", "build", "refit", "certify", "inspect", "conformance", "bench", "tune", "completion", "man", "debug precision", "debug passes", "debug tactics", "debug batch", "debug reduce", "debug environment")

RANGE_ERROR = (r"node 'ramp' \(Range\): output 0 'y': tensor int64\[2147483648\]: out of memory: "
               r"17.2 GB more are needed, 1.0 GB can be had")

# Arguments ({m}: the models), exit code, pattern of the output, pattern of the error: what is left of it
# when the line about random inputs is gone. Errors are one line.
ROWS = [
    ("", USAGE, "", "(?s)Usage: assay VERB.*check.*run.*build.*refit.*inspect.*conformance.*bench"),
    ("-h", 0, "Usage: assay VERB", ""),
    ("help", 0, "Usage: assay VERB", ""),
    ("--version", 0, r"^assay \d+\.\d+\.\d+\nlibraries +OpenBLAS [\d.]+(?s:.*)\ntarget +cpu: [^\\]*$", ""),
    ("frobnicate", USAGE, "", "unknown verb 'frobnicate'; 'assay -h' lists them"),
    ("-h", 0, r"\n  debug +find what is to blame .*; 'assay debug -h' lists them\n", ""),
    ("-h", 0, r"\n  edit +change a model and .*; 'assay edit -h' lists them\n", ""),
    ("debug", USAGE, "", "'debug' needs a verb; 'assay debug -h' lists them"),
    ("debug -h", 0, "Usage: assay debug VERB", ""),
    ("debug frobnicate", USAGE, "", "unknown verb 'debug frobnicate'; 'assay debug -h' lists them"),
    # tune
    ("tune", USAGE, "", "MODEL is missing"),
    ("tune {m}/cnn.onnx", 0,
     r"(?s)^TUNED  .*cnn.onnx on emu, for a generic accelerator: .*layers in fp.*\n  device  .*TFLOP/s in fp32.*\n  time    .* ms estimated; all in fp32: .*\n  output  'scores'.*"
     r"\n  front  .*rules   --precision fp.*took    \d+ runs?", ""),
    ("tune {m}/cnn.onnx --layers --no-pareto", 0, r"(?s)^TUNED  .*: [1-4] of \d+ layers in fp32, \d+ in fp16\n.*--precision fp16 --layer-precision '.*norm/square:fp32.*"
     r"trtexec --fp16 --precisionConstraints=prefer --layerPrecisions=.*:fp32", ""),
    ("tune {m}/cnn.onnx --layers --precision bf16,fp16 --device orin --json -", 0, r'(?s)"schema": "assay.tune/1".*"device": "orin".*"verdict": "met"', ""),
    ("tune {m}/cnn.onnx --target cpu --precision bf16 --seconds 0.05 --require top1>=1", 0, r"^TUNED .* on cpu: .*\n  device  this machine's CPU, .* ms in fp32, .* ms in bf16\n  time    .* ms by the times of its layers.*\n  met     top1 1 of 'scores' \(top1>=1\)\n", ""),
    ("tune {m}/cnn.onnx --layers --save tuned.onnx --save-options tuned.txt --save-plan tuned.plan", 0, r"(?s)^TUNED .*model   tuned.onnx\n.*plan    tuned.plan", ""),
    ("check tuned.onnx", FAITHFUL, "^FAITHFUL", ""),
    ("run tuned.plan", 0, "^scores: float", ""),
    ("tune {m}/cnn.onnx --require snr_db>=300", UNFAITHFUL, r"(?s)^NOT POSSIBLE  .*: all layers in fp32 do not meet what is required\n.*unmet   'scores' has snr_db", ""),
    ("tune {m}/cnn.onnx --layers --check test${{IFS}}-s${{IFS}}{{outputs}}", 0, "^TUNED", ""),
    ("tune {m}/cnn.onnx --check false${{IFS}}{{outputs}}", UNFAITHFUL, r"(?s)^NOT POSSIBLE .*unmet", ""),
    ("tune {m}/cnn.onnx --check true", USAGE, "", "the command is given what to judge as {outputs}"),
    ("tune {m}/cnn.onnx --require speed>=1", USAGE, "", "is not a requirement"),
    ("tune {m}/cnn.onnx --require nothing:cosine>=1", USAGE, "", "the model has no output 'nothing'"),
    ("tune {m}/cnn.onnx --precision fp32", USAGE, "", "--precision names formats below fp32"),
    ("tune {m}/cnn.onnx --precision fp16,fp16", USAGE, "", "names a format twice"),
    ("tune {m}/cnn.onnx --precision fp16,bf16,tf32,fp8e4m3", USAGE, "", "at most three formats"),
    ("tune {m}/cnn.onnx --precision ,", USAGE, "", "--precision is FORMAT"),
    ("tune {m}/cnn.onnx --device abacus", USAGE, "", "--device 'abacus' is not known; there are here, generic, h100, .*orin"),
    ("tune {m}/cnn.onnx --device here", USAGE, "", "it goes with --target cpu"),
    ("tune {m}/cnn.onnx --timing-cache t.txt", USAGE, "", "--timing-cache is for times measured here"),
    ("tune {m}/cnn.onnx --pareto 65", USAGE, "", "--pareto is 2 to 64"),
    ("tune {m}/cnn.onnx --target abacus", USAGE, "", "unknown target 'abacus'"),
    ("tune {m}/nothing.onnx", INPUT, "", "nothing.onnx': No such file"),
    ("tune {m}/cnn.onnx -i small.npz", INPUT, "", "the model wants"),
    # debug precision
    ("debug precision {m}/cnn.onnx", USAGE, "", "say which precision is asked for: --precision fp16; see 'assay debug precision -h'"),
    ("debug precision", USAGE, "", "MODEL is missing"),
    ("debug precision {m}/cnn.onnx --precision fp16", 0,
     r"(?s)^FIXED  .*cnn.onnx in fp16 on emu: \d of \d+ layers in fp32 are enough\n  after   'scores'.*cause   norm/square .*overflow.*"
     r"rules   --layer-precision '.*norm/square:fp32.*trtexec --precisionConstraints=prefer --layerPrecisions=.*"
     r"took    1 run, nothing built anew", ""),
    ("debug precision {m}/cnn.onnx --precision fp16 --as-asked", 0, r"(?s)^FIXED .*\n  before  'scores'.*\n  after   'scores'.*took    2 runs", ""),
    ("debug precision {m}/cnn.onnx --precision fp16 --fix best", 0, r"(?s)^FIXED .*\n  fewest  4 nodes in fp32, an estimated 0\.\d+ of the time of all; verified: 'scores'.*\n  best    chosen: \d+ nodes .*verified: .*\n  all     in fp32: 'scores'", ""),
    ("debug precision {m}/cnn.onnx --precision fp16 --fix fewest --json -", 0, r'(?s)"front": \{\s*"chosen": "fewest",\s*"differ": true', ""),
    ("debug precision {m}/cnn.onnx --precision fp16 --fix worst", USAGE, "", "--fix is fewest or best, not 'worst'"),
    ("debug precision {m}/cnn.onnx --precision fp16 --fix best --mode bisect", USAGE, "", "--fix is for --mode account"),
    ("check {m}/cnn.onnx --precision fp16 --fix fewest", UNFAITHFUL, r"(?s)\n  fix     4 nodes .*\n  fewest  chosen: 4 nodes .*\n  best    \d+ nodes .*\n  all     in fp32: 'scores'", ""),
    ("check {m}/cnn.onnx --precision fp16 --fix best -o fixes", UNFAITHFUL, r"(?s)\n  best    chosen: .*fixes/cnn.fixed.onnx", ""),
    ("check {m}/cnn.onnx --precision fp16 --fix best --no-fix", USAGE, "", "--fix and --no-fix do not go together"),
    ("check {m}/cnn.onnx --precision fp16 --fix most", USAGE, "", "--fix is fewest or best, not 'most'"),
    ("debug precision {m}/cnn.onnx --precision bf16", 0, r"^FAITHFUL  .*as it is", ""),
    ("debug precision {m}/cnn.onnx --precision fp16 --target cpu --unfused --json -", 0, '"verdict": "fixed"', ""),
    ("debug precision {m}/cnn.onnx --precision fp16 --mode bisect", 0, r"^FIXED  .*: \d+ of \d+ layers in fp32 are enough", ""),
    ("debug precision {m}/cnn.onnx --precision fp16 --mode linear --direction reverse", 0, r"^FIXED ", ""),
    ("debug precision {m}/cnn.onnx --precision fp16 --mode bisect --rebuild --target cpu --unfused", 0, r"(?s)^FIXED .*\d builds", ""),
    ("debug precision {m}/cnn.onnx --precision fp16 --save mixed.onnx --save-options mixed.txt", 0, r"(?s)^FIXED .*model   mixed.onnx", ""),
    ("check mixed.onnx", FAITHFUL, "^FAITHFUL", ""),
    ("debug precision {m}/cnn.onnx --precision fp16 --require snr_db>=300", UNFAITHFUL, "^NOT FIXED", ""),
    # Nothing is NaN, and this judge has nothing against the rest.
    ("debug precision {m}/cnn.onnx --precision fp16 --as-asked --check test${{IFS}}-s${{IFS}}{{outputs}}", 0, "^FAITHFUL", ""),
    ("debug precision {m}/cnn.onnx --precision fp16 --check test${{IFS}}-s${{IFS}}{{outputs}}", 0, "^FIXED", ""),
    ("debug precision {m}/cnn.onnx --precision fp16 --as-asked --mode bisect", USAGE, "", "--as-asked is for --mode account"),
    ("debug precision {m}/cnn.onnx --precision fp16 --check true", USAGE, "", "the command is given what to judge as {outputs}"),
    ("debug precision {m}/cnn.onnx --precision fp16 --mode guess", USAGE, "", "--mode is account, bisect or linear"),
    ("debug precision {m}/cnn.onnx --precision fp16 --rebuild", USAGE, "", "--rebuild and --direction are for --mode bisect"),
    ("debug precision {m}/cnn.onnx --precision fp16 --mode bisect --direction up", USAGE, "", "forward or reverse"),
    ("debug precision {m}/cnn.onnx --precision fp16 --target abacus", USAGE, "", "unknown target 'abacus'"),
    ("debug precision {m}/cnn.onnx --precision fp16 --fused --unfused", USAGE, "", "do not go together"),
    ("debug precision {m}/nothing.onnx --precision fp16", INPUT, "", "nothing.onnx': No such file"),
    ("debug precision {m}/cnn.onnx --precision fp16 -i small.npz", INPUT, "", "the model wants"),
    # debug passes
    ("debug passes {m}/cnn.onnx", 0, r"(?s)^SOUND  .*cnn.onnx in .* on cpu: \d+ passes did something.*\(no pass\)", ""),
    ("debug passes {m}/cnn.onnx --target emu --precision bf16 --all --json -", 0, '"verdict": "sound"', ""),
    ("debug passes {m}/cnn.onnx --no-pass everything", USAGE, "", "there is no pass 'everything'"),
    # debug tactics
    ("debug tactics {m}/cnn.onnx", 0, r"(?s)^SOUND  .*cnn.onnx in .* on cpu: no tactic.*tried   \d+ layers", ""),
    ("debug tactics {m}/cnn.onnx --layer conv --untimed", 0, r"(?s)^SOUND .*conv.*\* \w+ +\w+ +own error", ""),
    ("debug tactics {m}/cnn.onnx --precision bf16 --json -", 0, '"verdict": "sound"', ""),
    ("debug tactics {m}/cnn.onnx --layer nothing", USAGE, "", "'nothing' matches no layer"),
    ("debug tactics {m}/cnn.onnx --target emu", USAGE, "", "has one way to run a layer"),
    # debug batch
    ("debug batch {m}/external.onnx", 0, r"(?s)^SOUND  .*external.onnx in .* on emu: .*size +holds +3 runs.*samples 1 given", ""),
    ("debug batch {m}/external.onnx --target cpu --json -", 0, '"verdict": "sound"', ""),
    ("debug batch {m}/external.onnx --target abacus", USAGE, "", "unknown target 'abacus'"),
    ("debug batch {m}/cnn.onnx --inject head:stale=0,0", UNFAITHFUL,
     r"^FAULT  .*cnn.onnx in fp32, as declared on emu: the engine makes samples depend on their batch, in layer head\n"
     r"  node    head \(MatMul\)   first in 'size': at place 1 of 2, moved by [\d.]+ of its largest\n"
     r"  why     what enters it stays the same, 5 of its 5 elements do not \([\d.]+ of [\d.]+\)\n"
     r"  again       holds      1 runs  the same run once more\n"
     r"  static      broken     \d runs  a plan of a fixed batch gives what the open one gives; head\n"
     r"  size        broken     3 runs  alone, as in batches of 2, 3 and 4; head\n"
     r"  position    holds      \d runs  the same at each place in the batch\n"
     r"  neighbours  broken     2 runs  the same among other samples; head\n"
     r"  padding     broken     2 runs  the same among rows of zeros; head\n"
     r"  samples 1 given, the others drawn\n$", ""),
    ("debug batch {m}/cnn.onnx --inject nothing:stale=0,0", USAGE, "", "'nothing'"),
    ("debug batch {m}/external.onnx --axis n", 0, "^SOUND", ""),
    ("debug batch {m}/external.onnx --axis 3", INPUT, "", "--axis 3: no input has so many axes"),
    ("debug batch {m}/external.onnx --axis batch", INPUT, "", "--axis 'batch': no input has an open size of this name"),
    # debug reduce
    ("debug reduce {m}/cnn.onnx --precision fp16 -o part", UNFAITHFUL,
     r"^REDUCED  .*cnn.onnx in fp16 on emu: 1 of 13 nodes still fails\n  nodes    norm/square \(Mul\)\n"
     r"  fails    norm/square \(Mul\): overflow: .*, fp16 ends at 65504\n  how      the layer to blame fails by itself; 1 part run, .* s\n"
     r"  wrote    part: model.onnx, inputs.npz, golden.npz \(truth's outputs\)\n"
     r"  show it  assay check 'part/model.onnx' --inputs 'part/inputs.npz' --precision 'fp16' --no-fix\n$", ""),
    ("check part/model.onnx --inputs part/inputs.npz --precision fp16 --no-fix", UNFAITHFUL, "(?s)^UNFAITHFUL .*overflow", ""),
    ("check part/model.onnx --inputs part/inputs.npz --golden part/golden.npz", FAITHFUL, "^FAITHFUL", ""),
    ("debug reduce {m}/cnn.onnx --inject norm/mean:terms=2", UNFAITHFUL,
     r"(?s)^REDUCED .*nodes    norm/mean \(ReduceMean\)\n.*defect.*wrote    cnn.reduced: .*--inject 'norm/mean:terms=2' --no-fix", ""),
    ("debug reduce {m}/cnn.onnx --precision fp16 --unfused --target cpu -o part --json -", UNFAITHFUL, '"verdict": "reduced"', ""),
    ("debug reduce {m}/cnn.onnx -o part --check grep${{IFS}}-q${{IFS}}norm/root${{IFS}}{{model}}&&exit${{IFS}}1;true", UNFAITHFUL,
     r"(?s)^REDUCED .*: 1 of 13 .*norm/root \(Sqrt\)\n  fails    exit code 1\n.*cut from both ends.*  show it  .*'part/model.onnx'&&exit.*\n$", ""),
    ("debug reduce {m}/cnn.onnx --precision bf16 -o part --json -", 0, r'(?s)"verdict": "sound".*"command": null', ""),
    ("debug reduce {m}/cnn.onnx --precision bf16", 0, "^SOUND  .*: nothing fails, of 1 sample\n$", ""),
    ("debug reduce {m}/cnn.onnx --check true", INPUT, "", "the command is given what to judge as {model} or {outputs}"),
    ("debug reduce {m}/cnn.onnx --check /no/such/program{{model}}", INPUT, "", "cannot be run"),
    ("debug reduce {m}/cnn.onnx --exec true --target cpu", USAGE, "", "--exec is an engine of its own"),
    ("debug reduce {m}/cnn.onnx --precision fp16 --target abacus", USAGE, "", "unknown target 'abacus'"),
    ("debug reduce {m}/cnn.onnx --inject nothing:terms=2", FAILED, "", "no node 'nothing' to inject"),
    ("debug reduce {m}/nothing.onnx", INPUT, "", "nothing.onnx': No such file"),
    # debug environment
    ("debug environment", 0, r"(?s)^assay .*libraries .*rounding mode +to nearest\nflush to zero +off", ""),
    ("debug environment --json here.json", 0, "^assay ", ""),
    ("debug environment --compare here.json here.json", 0, "^EQUAL  0 entries differ", ""),
    ("debug environment --compare here.json", USAGE, "", "--compare and two files go together"),
    ("debug environment --compare here.json nothing.json", INPUT, "", "nothing.json"),
    ("build {m}/cnn.onnx -o kept.plan --tactic-sources=-pool", 0, "^built", ""),
    ("build {m}/cnn.onnx -o kept.plan --tactic-sources=-nothing", USAGE, "", "there is no tactic 'nothing' to leave out"),
    # check
    ("check", USAGE, "", "MODEL is missing; see 'assay check -h'"),
    ("check {m}/external.onnx", FAITHFUL, "^FAITHFUL  .*external.onnx as declared on emu: 'y': SNR ", ""),
    ("check {m}/external.onnx --precision fp16", FAITHFUL, "^FAITHFUL  .*in fp16 on emu", ""),
    ("check {m}/external.onnx --precision=bf16 --shape x=4x16", FAITHFUL, "^FAITHFUL  .*in bf16", ""),
    ("check {m}/cnn.onnx --precision bf16", FAITHFUL, "^FAITHFUL", ""),
    ("check {m}/cnn.onnx --precision fp16", UNFAITHFUL,
     r"(?s)^UNFAITHFUL  .*cnn.onnx in fp16 on emu: 'scores'.*origin +norm/square +overflow: .* fp16 ends at 65504.*"
     r"fix +\d nodes .*in fp32 +verified: .*\n          as files: assay check .*cnn.onnx --precision fp16 -o fix\n$", ""),
    ("check {m}/cnn.onnx --precision fp16 -o fixed", UNFAITHFUL,
     r"(?s)^UNFAITHFUL .*fix +\d nodes .*\n          fixed/cnn.fixed.onnx\n          fixed/cnn.fix.txt   \(--fix-file, and", ""),
    ("check --precision fp16 -- {m}/cnn.onnx", UNFAITHFUL, r"as files: assay check --precision fp16 -o fix -- ", ""),
    ("check {m}/cnn.onnx --precision fp16 --no-fix", UNFAITHFUL, "^UNFAITHFUL(?!(.|\n)*  fix)", ""),
    ("check {m}/cnn.onnx --precision fp16 --layer-precision norm/*:fp32", FAITHFUL, "^FAITHFUL", ""),
    ("check {m}/loop.onnx --precision fp16", FAITHFUL, "'y': SNR .*'steps': SNR", ""),
    ("check {m}/quantized.onnx --precision fp16", FAITHFUL, "'y'", ""),
    ("check {m}/if_sequence.onnx --precision fp16", FAITHFUL, r"'y': SNR \d.*'parts': SNR \d.*'count' is equal", ""),
    ("check {m}/cnn.onnx --precision fp16 --report page.html --annotate noted.onnx", UNFAITHFUL, "^UNFAITHFUL", ""),
    ("check noted.onnx --precision bf16", FAITHFUL, "^FAITHFUL", ""),
    ("check {m}/cnn.onnx --report /nowhere/page.html", FAILED, "^$", "--report '/nowhere/page.html' cannot be written: there is no folder '/nowhere'"),
    ("check {m}/cnn.onnx --annotate /nowhere/noted.onnx", FAILED, "^$", "--annotate '/nowhere/noted.onnx' cannot be written"),
    ("check {m}/cnn.onnx --nonsense", USAGE, "", "unknown option '--nonsense'; see 'assay check -h'"),
    ("check {m}/cnn.onnx --precisio fp16", USAGE, "", "did you mean --precision?"),
    ("check {m}/cnn.onnx -x", USAGE, "", "unknown option '-x'"),
    ("check {m}/cnn.onnx --precision", USAGE, "", "--precision needs a value"),
    ("check {m}/cnn.onnx --precision fp17", USAGE, "", "unknown precision 'fp17'; use fp32"),
    ("check {m}/cnn.onnx --precision int8", USAGE, "", "needs a model with QuantizeLinear"),
    ("check {m}/cnn.onnx --accumulate huge", USAGE, "", "unknown accumulator 'huge'"),
    ("check {m}/cnn.onnx --layer-precision nothing:fp16", USAGE, "", "'nothing' matches no node and no output"),
    ("check {m}/cnn.onnx --layer-precision nothing", USAGE, "", "'nothing' is not PATTERN:FORMAT"),
    ("check {m}/cnn.onnx --target abacus", USAGE, "", "unknown target 'abacus'"),
    ("check {m}/cnn.onnx --truth some", USAGE, "", "--truth is unquantized, not 'some'"),
    ("check {m}/cnn.onnx --search-time much", USAGE, "", "'much' is not a number, as --search-time needs"),
    ("check {m}/cnn.onnx --require cosine~1", USAGE, "", "'cosine~1' is not a requirement"),
    ("check {m}/external.onnx --require test${{IFS}}-s${{IFS}}{{outputs}}", FAITHFUL, "^FAITHFUL", ""),
    ("check {m}/external.onnx --require test${{IFS}}!${{IFS}}-s${{IFS}}{{outputs}}", UNFAITHFUL, "^UNFAITHFUL(.|\n)*unmet .*says no", ""),
    ("check {m}/external.onnx --require exit${{IFS}}7;{{outputs}}", FAILED, "", "--require 'exit.*ended with exit code 7"),
    ("check {m}/external.onnx --require cat${{IFS}}{{outputs}}${{IFS}}{{golden}}", USAGE, "", "give --golden"),
    ("check {m}/external.onnx --require golden_psnr_db>30", USAGE, "", "give --golden"),
    ("check {m}/cnn.onnx --require nowhere:cosine>0", USAGE, "", "the model has no output 'nowhere'"),
    ("check {m}/cnn.onnx --seed 99999999999999999999", USAGE, "", "is not a number, as --seed needs"),
    ("check {m}/cnn.onnx --no-fix=1", USAGE, "", "--no-fix takes no value"),
    ("check {m}/cnn.onnx more", USAGE, "", "unexpected argument 'more'"),
    ("check {m}/cnn.onnx --shape image", USAGE, "", "'image' is not NAME=DIMS"),
    ("check {m}/cnn.onnx --shape image=1xtwo", USAGE, "", "'1xtwo' is not a list of sizes"),
    ("check {m}/cnn.onnx --shape image=1x3x9x9", INPUT, "", "dimension 2 is fixed and cannot be 9"),
    ("check {m}/cnn.onnx --shape picture=1", INPUT, "", "no input 'picture'"),
    ("check {m}/nothing.onnx", INPUT, "", "nothing.onnx': No such file"),
    ("check {m}", INPUT, "", "is a folder; give a file"),
    ("check {m}/external.onnx.data", INPUT, "", "external.onnx.data': byte "),
    ("check {m}/cnn.onnx -i nothing.npz", INPUT, "", "'nothing.npz': No such file"),
    ("check {m}/cnn.onnx -i nothing.txt", INPUT, "", "No such file"),
    ("check {m}/cnn.onnx -i small.npz", INPUT, "", r"array 'image' has shape \[1, 3, 4, 4\]; the model wants"),
    ("check {m}/cnn.onnx -i other.npz", INPUT, "", "there is no array for input 'image'"),
    ("check {m}/cnn.onnx -i image.npz -g other.npz", INPUT, "", "no array with the name of an output"),
    ("check {m}/cnn.onnx -i image.npz -g wrong.npz", UNFAITHFUL, "'scores' has another shape than golden", r"'scores' has shape \[1, 7\]"),
    ("check {m}/cnn.onnx -i image.npz -g golden.npz", FAITHFUL, "^FAITHFUL", ""),
    ("check {m}/cnn.onnx -i image.npz -g renamed.npz", FAITHFUL, "^FAITHFUL", "^golden 'theirs:0' is taken for 'scores': the same elements$"),
    ("check {m}/cnn.onnx --precision fp16 -o {m}/cnn.onnx/at/all", FAILED, "", "Not a directory; give another path"),
    ("check {m}/external.onnx --json nowhere/x.json", FAILED, "^$", "nothing was run: --json 'nowhere/x.json' cannot be written"),
    ("check gather.onnx -i far.npz", INPUT, "", "Gather"),
    ("check range.onnx --memory-limit 1G", FAILED, "", RANGE_ERROR),
    ("check range.onnx --memory-limit much", USAGE, "", "'much' is not a size"),
    # run
    ("run range.onnx --memory-limit 1G", FAILED, "", RANGE_ERROR),
    ("run range.onnx --memory-limit 1G --mode truth", FAILED, "", RANGE_ERROR),
    ("run huge.onnx", FAILED, "", r"input 'x': tensor float\[1048576, 1048576\]: out of memory: 8.8 TB more are needed, "),
    ("run {m}/cnn.onnx", 0, r"^scores: float\[1, 5\]  min ", ""),
    ("run {m}/cnn.onnx --mode truth", 0, r"^scores: double\[1, 5\]", ""),
    ("run {m}/cnn.onnx --mode plan --precision fp16", 0, "^scores", ""),
    ("run {m}/cnn.onnx --precision fp16", 0, "^scores", ""),
    ("run {m}/cnn.onnx --mode other", USAGE, "", "--mode is truth, native or plan, not 'other'"),
    ("run {m}/cnn.onnx --mode truth --precision fp16", USAGE, "", "--precision is for --mode plan, not truth"),
    ("run {m}/cnn.onnx --precision fp17", USAGE, "", "unknown precision 'fp17'"),
    ("run {m}/cnn.onnx --truth some", USAGE, "", "--truth is unquantized, not 'some'"),
    ("run {m}/cnn.onnx --output nothing*", USAGE, "", r"no output matches 'nothing\*'; the model has 'scores'"),
    ("run {m}/if_sequence.onnx", 0, r"(?s)y: float.*parts: 3 items.*count: int64", ""),
    ("run {m}/if_sequence.onnx -o out.npz", FAILED, "", "array 'parts': npy holds tensors"),
    ("run {m}/if_sequence.onnx -o out.npz --output y --output count", 0, "", ""),
    ("run {m}/cnn.onnx -o nowhere/out.npz", FAILED, "", "--save-outputs 'nowhere/out.npz' cannot be written"),
    ("run {m}/cnn.onnx -i image.npz -o plainly", 0, "", ""),
    ("inspect data plainly", 0, "scores", ""),
    ("run {m}/cnn.onnx -i image.npz -o out.unknown", USAGE, "", "the end of a name says the format"),
    ("run {m}/nothing.onnx", INPUT, "", "No such file"),
    ("run gather.onnx -i far.npz", INPUT, "", "Gather"),
    # An initializer that is an input, too, is what the caller says.
    *((f"run default.onnx --mode plan --target {target}{fused} -i {given}.npz", 0, f"min {y}  max {y}", "")
      for target in ("emu", "cpu") for fused in ("", " --fused") for given, y in (("left", 4), ("given", 12))),
    # build, and what takes plans
    ("build {m}/cnn.onnx", USAGE, "", "say where the plan goes: --output FILE"),
    ("build {m}/cnn.onnx -o cnn.plan --precision fp17", USAGE, "", "unknown precision 'fp17'"),
    ("build {m}/nothing.onnx -o cnn.plan", INPUT, "", "No such file"),
    ("build {m}/cnn.onnx -o no/such/folder/cnn.plan", FAILED, "", "--output 'no/such/folder/cnn.plan' cannot be written"),
    ("build {m}/cnn.onnx -o cnn.plan --precision bf16", 0, r"^built cnn.plan: \d+ layers, .*B, in .*\nactivation memory: ", ""),
    ("run cnn.plan --inputs image.npz", 0, r"scores: float\[1, \d+\]  min", ""),
    ("run cnn.plan --inputs image.npz --precision fp16", USAGE, "", "'cnn.plan' is a plan: its shapes, formats"),
    ("bench cnn.plan --seconds 0.01", 0, r"latency +median [0-9.]+ ms", ""),
    ("refit cnn.plan", USAGE, "", "say where the weights come from: --weights MODEL.onnx"),
    ("refit {m}/cnn.onnx --weights {m}/cnn.onnx", INPUT, "", "cnn.onnx': this is not a plan file"),
    ("refit cnn.plan --weights {m}/nothing.onnx", INPUT, "", "No such file"),
    ("refit cnn.plan --weights {m}/loop.onnx -o no.plan", INPUT, "", "the model is not the plan's with other weights: "),
    ("refit cnn.plan --weights image.npz -o no.plan", INPUT, "", "'image.npz': the plan's model has no weight 'image'"),
    ("refit cnn.plan --weights short.npz -o no.plan", INPUT, "", r"weight 'w' is float\[.*\] in the plan, and the new one is float\[2\]"),
    ("refit cnn.plan --weights {m}/cnn.onnx -o no/such/folder/a.plan", FAILED, "", "--output 'no/such/folder/a.plan' cannot be written"),
    ("refit cnn.plan --weights {m}/cnn.onnx -o again.plan", 0, r"^refitted again.plan: 0 of \d+ weights changed, in ", ""),
    ("refit cnn.plan --weights zeros.npz", 0, r"^refitted cnn.plan: 1 of \d+ weights changed, in ", ""),
    ("run cnn.plan --inputs image.npz", 0, r"scores: float\[1, \d+\]  min", ""),
    ("build {m}/cnn.onnx -o bare.plan --strip-weights", 0, r"\nits weights are left out: assay refit bare.plan --weights ", ""),
    ("inspect plan bare.plan", 0, r"^plan +\d+ layers on cpu; stripped: 2 weights are missing \(\d+ bytes\)\n +assay refit bare.plan --weights MODEL", ""),
    ("inspect plan bare.plan --explain conv", INPUT, "", "the plan is stripped: its 2 weights"),
    ("bench bare.plan --seconds 0.01", INPUT, "", "the plan is stripped: its 2 weights .* 'assay refit PLAN --weights MODEL.onnx'"),
    ("run bare.plan --inputs image.npz", INPUT, "", "the plan is stripped: its 2 weights"),
    ("refit bare.plan --weights zeros.npz", INPUT, "", "weight 'w' is not the one that the plan was built with, .* --refittable"),
    ("refit bare.plan --weights {m}/cnn.onnx", 0, r"^refitted bare.plan: 2 missing weights put in, 0 of \d+ weights changed, in ", ""),
    ("run bare.plan --inputs image.npz", 0, r"scores: float\[1, \d+\]  min", ""),
    ("bench cnn.plan --seconds 0.01 --allocation static", 0, r"\nmemory +(\d\S* k?B)\S* a context when it was opened, \1\S* now \(--allocation static\)\n", ""),
    ("bench cnn.plan --seconds 0.01 --allocation runtime", 0, r"\nmemory +0 bytes a context when it was opened, \d", ""),
    ("bench cnn.plan --seconds 0.01 --allocation often", USAGE, "", "--allocation is static, runtime, or a profile's number; not 'often'"),
    ("bench cnn.plan --seconds 0.01 --allocation 3", FAILED, "", "there is no profile 3: the engine has 1"),
    ("bench cnn.plan --batch 2", USAGE, "", "'cnn.plan' is a plan: --batch was settled when it was built"),
    ("build {m}/cnn.onnx -o strict.plan --precision tf32 --strict", FAILED, "", "in tf32 has no kernel and is emulated; build without --strict"),
    ("build {m}/cnn.onnx -o cnn.plan --tactic-sources abacus", USAGE, "", "'abacus' is not a source of tactics"),
    ("build {m}/cnn.onnx -o own.plan --tactic-sources assay --timing-cache times.txt", 0, "^built own.plan", ""),
    ("build {m}/cnn.onnx -o own.plan --timing-cache image.npz", USAGE, "", "this is not a timing cache"),
    ("inspect plan cnn.plan", 0, r"^plan +\d+ layers on cpu; activation memory: .*\nfp32 +tight\ninput +'image' float\[1, 3, 8, 8\]\noutput +'scores' float\[1, 5\]\nasked +ran +tactic(?s:.*)\nbf16 ", ""),
    ("build {m}/cnn.onnx -o bound.plan --fp32 bound", 0, "^built bound.plan", ""),
    ("inspect plan bound.plan", 0, r"\nfp32 +bound\n", ""),
    ("build {m}/cnn.onnx -o any.plan --fp32 quick", USAGE, "", "--fp32 is plain, tight or bound, not 'quick'"),
    ("bench bound.plan --fp32 plain", USAGE, "", "--fp32 was settled when it was built"),
    ("run {m}/cnn.onnx --fp32 plain --target cpu", 0, "^scores", ""),
    ("check {m}/cnn.onnx --fp32 bound --target cpu", 0, "FAITHFUL", ""),
    ("build {m}/cnn.onnx -o any.plan --no-batch-invariant", 0, "^built any.plan", ""),
    ("run any.plan -i image.npz", 0, "scores", ""),
    ("bench cnn.plan --no-batch-invariant", USAGE, "", "--no-batch-invariant was settled when it was built"),
    ("inspect plan cnn.plan --explain scores", 0, r"bf16: --precision\n(?s:.*)reads ", ""),
    ("inspect plan cnn.plan --explain nothing", USAGE, "", "no layer of the plan has a node or an output 'nothing'"),
    ("inspect plan {m}/cnn.onnx --explain scores", USAGE, "", "--explain is for plan files"),
    ("build {m}/external.onnx -o dyn.plan --profile x=1x16:4x16:8x16", 0, "^built dyn.plan", ""),
    ("bench dyn.plan --seconds 0.01 --shape x=5x16", 0, "latency", ""),
    ("bench dyn.plan --seconds 0.01 --shape x=9x16", FAILED, "", r"input 'x' is \[9, 16\]; the plan was built for \[1, 16\] to \[8, 16\]"),
    ("bench cnn.plan --seconds 0.01 --shape image=2x3x8x8", FAILED, "", r"input 'image' is \[2, 3, 8, 8\]; the plan was built for"),
    ("build {m}/external.onnx -o dyn.plan --profile x=4x16:1x16:8x16", USAGE, "", "'x=4x16:1x16:8x16' is not a profile"),
    ("build {m}/external.onnx -o dyn.plan --profile x=1x16:2", USAGE, "", "is not a profile"),
    ("build {m}/external.onnx -o dyn.plan --profile y=1x16:2x16:3x16", USAGE, "", "the model has no input 'y'"),
    ("run cut.plan", INPUT, "", "'cut.plan': the plan file is cut off"),
    ("run empty.plan", INPUT, "", "the file is empty"),
    # bench
    ("bench", USAGE, "", "MODEL is missing"),
    ("bench {m}/nothing.onnx", INPUT, "", "No such file"),
    ("bench {m}/cnn.onnx --seconds 0.01 --target abacus", USAGE, "", "unknown target 'abacus'"),
    ("bench {m}/cnn.onnx --seconds 0.01", 0, r"latency +median [0-9.]+ ms(?s:.*)throughput", ""),
    ("bench {m}/cnn.onnx --seconds 0.01 --contexts 3 --threads 1", 0, "runs/s, [0-9]+ runs, 3 contexts of 1 thread\n", ""),
    ("bench {m}/cnn.onnx --contexts 999", USAGE, "", "--contexts is 1 to"),
    ("bench {m}/cnn.onnx --seconds 0.01 --contexts 2 --trace trace.json", 0, "2 contexts", ""),
    ("bench {m}/cnn.onnx --seconds 0.01 --trace no/such/folder.json", FAILED, "^$", "--trace 'no/such/folder.json' cannot be written"),
    ("bench {m}/cnn.onnx --seconds 0.01 --latencies", 0, r"^([0-9.]+\n){3,}$", ""),
    ("bench {m}/cnn.onnx --seconds 0.01 --layers --precision bf16", 0, "tactic +operator(?s:.*)Conv", ""),
    ("run {m}/cnn.onnx --target cpu", 0, "scores", ""),
    ("run {m}/cnn.onnx --target abacus", USAGE, "", "unknown target 'abacus'; this build has cpu, emu"),
    ("check {m}/cnn.onnx --target cpu --fused --precision bf16 --no-fix", 0, "FAITHFUL .* on cpu", ""),
    # inspect
    ("inspect", USAGE, "", "WHAT is missing"),
    ("inspect model", USAGE, "", "FILE is missing"),
    ("inspect weather {m}/cnn.onnx", USAGE, "", "'weather' cannot be inspected: say model, data or plan"),
    ("inspect model {m}/cnn.onnx", 0, r"(?s)input +'image' float\[1, 3, 8, 8\].*output +'scores' float\[1, 5\].*Conv-", ""),
    ("inspect model {m}/cnn.onnx", 0, r"flops +[1-9][0-9.]*", ""),
    ("inspect model {m}/loop.onnx", 0, "Loop", ""),
    ("inspect model {m}/nothing.onnx", INPUT, "", "No such file"),
    ("inspect data image.npz", 0, r"image: float\[1, 3, 8, 8\]  min", ""),
    ("inspect data {m}/cnn.onnx", INPUT, "", "it is in no format that can be read"),
    ("inspect plan {m}/cnn.onnx --precision fp16", 0, "(?s)plan +13 layers.*fp16 +Conv", ""),
    ("inspect plan {m}/cnn.onnx --layer-precision nothing:fp16", USAGE, "", "matches no node"),
    # conformance
    ("conformance", USAGE, "", "FOLDER is missing"),
    ("conformance nothing", INPUT, "", "'nothing' is not a folder that can be read"),
    ("conformance {m}", INPUT, "", "no case below"),
    ("conformance cases --backend abacus", USAGE, "", "unknown target 'abacus'; this build has cpu, emu"),
    ("conformance cases --match right", 0, "^1 passed, 0 failed\n$", ""),
    ("conformance cases --jobs 1", UNFAITHFUL, r"(?s)FAIL broken: .*FAIL wrong: .*\n1 passed, 2 failed\n$", ""),
    ("conformance cases --json cases.json", UNFAITHFUL, "1 passed, 2 failed", ""),
]


class Failures(list):
    def check(self, ok, what):
        if not ok:
            self.append(what)
            print("FAIL", what)


def assay(program, *arguments, **options):
    done = subprocess.run([program, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=120, **options)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def strict(text):
    """JSON without NaN and Infinity, which Python reads otherwise."""
    def refuse(name):
        raise ValueError(name)
    return json.loads(text, parse_constant=refuse)


def write_case(folder, name, output):
    os.makedirs(f"{folder}/{name}/test_data_set_0")
    info = lambda n: helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [info("x")], [info("y")])
    if name == "broken":
        graph.node[0].input[0] = "nothing"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), f"{folder}/{name}/model.onnx")
    for kind, value in (("input", [1, 2]), ("output", output)):
        with open(f"{folder}/{name}/test_data_set_0/{kind}_0.pb", "wb") as f:
            f.write(onnx.numpy_helper.from_array(np.array(value, np.float32)).SerializeToString())


def write_files(models):
    image = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.savez("image.npz", image=image)
    np.savez("small.npz", image=image[:, :, :4, :4])
    np.savez("other.npz", picture=image)
    np.savez("wrong.npz", scores=np.zeros((1, 7), np.float32))
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "at"], ["y"])], "g",
        [helper.make_tensor_value_info("table", onnx.TensorProto.FLOAT, [3]),
         helper.make_tensor_value_info("at", onnx.TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "gather.onnx")
    np.savez("far.npz", table=np.zeros(3, np.float32), at=np.array([7]))
    tensor = helper.make_tensor_value_info
    huge = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [tensor("x", onnx.TensorProto.FLOAT, [1 << 20] * 2)],
                             [tensor("y", onnx.TensorProto.FLOAT, None)])
    ramp = helper.make_graph([helper.make_node("Range", ["start", "limit", "step"], ["y"], name="ramp")], "g", [],
                             [tensor("y", onnx.TensorProto.INT64, None)],
                             [helper.make_tensor(name, onnx.TensorProto.INT64, [], [value])
                              for name, value in (("start", 0), ("limit", 1 << 31), ("step", 1))])
    default = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
                                [tensor("x", onnx.TensorProto.FLOAT, ["N", 4]), tensor("w", onnx.TensorProto.FLOAT, [4, 4])],
                                [tensor("y", onnx.TensorProto.FLOAT, ["N", 4])],
                                [onnx.numpy_helper.from_array(np.ones((4, 4), np.float32), "w")])
    np.savez("left.npz", x=np.ones((1, 4), np.float32))
    np.savez("given.npz", x=np.ones((1, 4), np.float32), w=np.full((4, 4), 3, np.float32))
    for name, graph in (("huge", huge), ("range", ramp), ("default", default)):
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), f"{name}.onnx")
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(f"{models}/cnn.onnx").graph.initializer}
    np.savez("short.npz", w=np.zeros(2, np.float32))
    np.savez("zeros.npz", w=np.zeros_like(weights["w"]))
    with open("cut.plan", "wb") as f:
        f.write(b"ASSAYPLN" + bytes(100))
    open("empty.plan", "wb").close()
    for name, output in (("right", [-1, -2]), ("wrong", [1, 2]), ("broken", [-1, -2])):
        write_case("cases", name, output)


def test_rows(program, models, failures):
    for line, code, out, err in ROWS:
        got, stdout, stderr = assay(program, *line.format(m=models).split())
        rest = "".join(l for l in stderr.splitlines(True) if not l.startswith(RANDOM))
        where = f"assay {line}: exit code {got}, output {stdout!r}, error {rest!r}"
        failures.check(got == code, f"{where}: exit code {code} expected")
        failures.check(re.search(out, stdout) if out else not stdout, f"{where}: output {out!r} expected")
        failures.check(re.search(err, rest) if err else not rest, f"{where}: error {err!r} expected")
        if line and code >= USAGE:
            failures.check(re.fullmatch(r"assay: [^\n]+\n", rest), f"{where}: one line expected")


def test_help(program, failures):
    for verb in VERBS:
        for option in ("-h", "--help"):
            code, out, err = assay(program, *verb.split(), option)
            failures.check(code == 0 and not err, f"assay {verb} {option}: exit code {code}, error {err!r}")
            for part in (f"Usage: assay {verb} ", "Options:", "-h, --help", "Examples:\n  assay " + verb):
                failures.check(part in out, f"assay {verb} -h has no {part!r}")
            failures.check(max(map(len, out.splitlines())) <= 100, f"assay {verb} -h has lines past 100 columns")


OUTPUT = {"name", "verdict", "max_abs", "max_rel", "rms", "cosine", "snr_db", "nan", "inf"}
FORM = {
    "": {"schema", "model", "precision", "target", "verdict", "blame", "outputs", "culprits", "fix", "layers"},
    "outputs": OUTPUT,
    "culprits": {"nodes", "op", "value", "verdict", "why", "share"},
    "layers": {"name", "nodes", "format", "own", "inherited", "verdict"},
}


def is_number(x):
    return isinstance(x, (int, float)) or x in ("nan", "inf", "-inf", None)


def test_check_json(program, models, failures):
    for model, precision, code in (("cnn", "fp16", 1), ("cnn", "bf16", 0), ("loop", "fp16", 0), ("quantized", "fp16", 0),
                                   ("if_sequence", "fp16", 0), ("external", "fp8e4m3", None)):
        where = f"assay check {model}.onnx --precision {precision} --json -"
        got, out, _ = assay(program, "check", f"{models}/{model}.onnx", "--precision", precision, "--json", "-")
        failures.check(got == code or (code is None and got in (0, 1)), f"{where}: exit code {got}")
        try:
            j = strict(out)
        except ValueError as e:
            failures.check(False, f"{where}: not strict JSON: {e}")
            continue
        for part, fields in FORM.items():
            for item in [j] if not part else j[part]:
                failures.check(fields <= set(item), f"{where}: {part or 'root'} lacks {sorted(fields - set(item))}")
        failures.check(j["schema"] == "assay.check/1" and j["target"] == "emu" and j["precision"] == precision, f"{where}: head")
        failures.check(j["model"] == f"{models}/{model}.onnx", f"{where}: model {j['model']}")
        failures.check(j["verdict"] == ("unfaithful" if got else "faithful"), f"{where}: verdict {j['verdict']}")
        failures.check(j["blame"] in ("none", "precision", "engine", "export", "model", "input"), f"{where}: {j['blame']}")
        failures.check((j["blame"] == "none") == (got == 0), f"{where}: blame {j['blame']}")
        for o in j["outputs"]:
            failures.check(all(is_number(o[k]) for k in OUTPUT - {"name", "verdict"}), f"{where}: {o}")
        if got == 0:
            failures.check(j["fix"] is None and j["culprits"] == [], f"{where}: a fix or culprits")
        if model == "cnn" and got:
            fix = j["fix"]
            failures.check({"kind", "nodes", "layer_precision", "trtexec", "verified", "files"} <= set(fix), f"{where}: fix")
            failures.check(fix["verified"]["verdict"] == "faithful" and
                           OUTPUT <= set(fix["verified"]["outputs"][0]), f"{where}: verified")
            failures.check(j["culprits"][0]["nodes"] == ["norm/square"] and j["culprits"][0]["verdict"] == "overflow",
                           f"{where}: culprits {j['culprits']}")
            failures.check(j["culprits"][0]["value"] > 65504, f"{where}: value {j['culprits'][0]['value']}")
            failures.check(fix["files"] == [] and fix["command"].endswith(" -o fix"), f"{where}: files {fix['files']}")
            written, text, err = assay(program, *shlex.split(fix["command"])[1:-1], "json-fix", "--json", "-")
            fix = strict(text)["fix"]
            failures.check(written == 1 and len(fix["files"]) == 2 and all(os.path.exists(f) for f in fix["files"]) and
                           fix["command"] is None, f"{where}: files {fix['files']}")
            again, text, _ = assay(program, "check", f"{models}/{model}.onnx", "--precision", precision, "--layer-precision",
                                   fix["layer_precision"])
            failures.check(again == 0, f"{where}: its --layer-precision gives {text}")
            fixed, text, err = assay(program, "check", fix["files"][0])
            failures.check(fixed == 0, f"{where}: its mixed model gives {text}{err}")
            names = [l["name"] for l in j["layers"]]
            failures.check(names[:3] == ["conv", "bn", "relu"], f"{where}: layers {names}")


def test_other_json(program, models, failures):
    for arguments, fields in (
            (("inspect", "model", f"{models}/if_sequence.onnx"), {"schema", "inputs", "outputs", "nodes", "opsets"}),
            (("inspect", "plan", f"{models}/cnn.onnx"), {"schema", "layers"}),
            (("inspect", "data", "odd.npz"), {"schema", "arrays"}),
            (("conformance", "cases"), {"schema", "passed", "failed", "cases"})):
        where = "assay " + " ".join(arguments) + " --json -"
        np.savez("odd.npz", a=np.array([np.nan, np.inf, 1]), b=np.array([], np.float32), c=np.array(["x"]))
        _, out, err = assay(program, *arguments, "--json", "-")
        try:
            j = strict(out)
            failures.check(fields <= set(j), f"{where}: {sorted(j)}")
        except ValueError as e:
            failures.check(False, f"{where}: not strict JSON: {e}: {out[:200]!r} {err!r}")
    j = strict(assay(program, "inspect", "model", f"{models}/cnn.onnx", "--json", "-")[1])
    failures.check(j["nodes"][0]["name"] == "conv" and j["nodes"][0]["inputs"] == ["image", "w"], f"nodes: {j['nodes'][0]}")
    failures.check(j["inputs"][0] == {"name": "image", "type": "float[1, 3, 8, 8]", "elem": "float", "shape": [1, 3, 8, 8]},
                   f"inputs: {j['inputs']}")


def test_odd_names(program, failures):
    """Names with line breaks and bytes that are not UTF-8: still one line, still JSON."""
    info = lambda n: helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2])
    for op, code in (("Neg", 0), ("Frobnicate", INPUT)):
        graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], name="two\nlines XX")], "g", [info("x")], [info("y")])
        data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
        with open("odd.onnx", "wb") as f:
            f.write(data.replace(b"XX", b"\xff\xe4"))
        for arguments in (("check", "odd.onnx"), ("inspect", "model", "odd.onnx")):
            got, out, err = assay(program, *arguments, "--json", "-")
            if arguments[0] == "inspect":  # unknown operators can be looked at
                failures.check(got == 0 and err == "" and strict(out), f"{arguments} on odd names: {got}, {err!r}")
                continue
            rest = "".join(l for l in err.splitlines(True) if not l.startswith(RANDOM))
            failures.check(got == code, f"{arguments} on odd names: exit code {got}, {err!r}")
            if code:
                failures.check(re.fullmatch(r"assay: [^\n]+\n", rest), f"{arguments} on odd names: {rest!r}")
            else:
                strict(out)


def test_trace(program, models, failures):
    """Each layer of each run is an event, within its run's, in its context's lane."""
    out = assay(program, "bench", f"{models}/cnn.onnx", "--seconds", "0.05", "--contexts", "2", "--layers",
                "--trace", "trace.json")[1]
    with open("trace.json") as f:
        events = strict(f.read())["traceEvents"]
    lanes = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    failures.check(lanes == {0: "context 0", 1: "context 1"}, f"trace: lanes {lanes}")
    runs = {(e["tid"], int(e["name"].split()[1])): e for e in events if e.get("cat") == "run"}
    layers = [e for e in events if e["ph"] == "X" and e["cat"] != "run"]
    names = {e["name"] for e in layers}
    failures.check(all(n in out for n in names), f"trace: {names} are not all in {out!r}")
    failures.check(len(layers) == len(runs) * len(names), f"trace: {len(layers)} layers in {len(runs)} runs")
    for e in layers:
        run = runs[e["tid"], e["args"]["run"]]
        inside = run["ts"] <= e["ts"] and e["ts"] + e["dur"] <= run["ts"] + run["dur"] + 0.001
        failures.check(inside and e["args"]["tactic"] and e["args"]["format"] == "fp32", f"trace: {e} in {run}")
    failures.check(len(runs) >= 6, f"trace: {len(runs)} runs")


def test_closed_output(program, models, failures):
    with open("/dev/full", "w") as full:
        done = subprocess.run([program, "inspect", "model", f"{models}/cnn.onnx"], stdout=full, stderr=subprocess.PIPE)
    failures.check(done.returncode == FAILED, f"writing to a full disk: exit code {done.returncode}")


def test_memory_limit(program, failures):
    def run(limit):
        return assay(program, "run", "range.onnx", env=dict(os.environ, ASSAY_MEMORY_LIMIT=limit))
    code, _, err = run("1G")
    failures.check(code == FAILED and re.search(RANGE_ERROR, err), f"ASSAY_MEMORY_LIMIT=1G: {code}, {err!r}")
    code, _, err = run("1G5")
    failures.check(code == USAGE and "ASSAY_MEMORY_LIMIT is '1G5'" in err, f"ASSAY_MEMORY_LIMIT=1G5: {code}, {err!r}")


def golden_of(program, models, failures):
    code, _, err = assay(program, "run", f"{models}/cnn.onnx", "-i", "image.npz", "-o", "golden.npz")
    failures.check(code == 0 and np.load("golden.npz")["scores"].shape == (1, 5), f"run -o: {err}")
    np.savez("renamed.npz", **{"theirs:0": np.load("golden.npz")["scores"]})


def main(program, models):
    program, models = os.path.abspath(program), os.path.abspath(models)
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_files(models)
        golden_of(program, models, failures)
        test_rows(program, models, failures)
        test_help(program, failures)
        test_check_json(program, models, failures)
        test_other_json(program, models, failures)
        test_odd_names(program, failures)
        test_trace(program, models, failures)
        test_closed_output(program, models, failures)
        test_memory_limit(program, failures)
        os.chdir("/")
    print(f"{len(ROWS)} command lines, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
