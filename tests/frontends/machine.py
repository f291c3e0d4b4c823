"""What tests of the program may expect of the CPU: read here, and not asked of the code under test."""
import os

NARROW = ("SSE41", "AVX", "AVX2", "AVX2_VNNI")


def has_avx512():
    """Vectors of 512 bits, and oneDNN is not held to narrower ones."""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        flags = next((line for line in info if line.startswith("flags")), "").split()
    return {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= set(flags) and os.environ.get("ONEDNN_MAX_CPU_ISA") not in NARROW


def skipped(part, reason):
    """A part of the test that this machine cannot run; scripts/test lists it."""
    print(f"skipped: {part}: {reason}", flush=True)
