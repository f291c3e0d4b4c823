#!/usr/bin/env python3
"""Checks every #include against the order of the folders: check_includes.py PROJECT.

A folder of src/ includes itself and those before it; backends do not include each other, but what they share (backends/vmath,
backends/layers);
include/assay includes itself only; examples and integrations include only <assay/...>, integrations their own folder,
too; what a library is hidden behind stays the only folder that includes it.
"""
import pathlib
import re
import sys

ORDER = ("base formats tensor io ir ops onnx eval passes plan exec backends runtime data compare account ranges "
         "diagnose check edit tune certify debug report cli frontends").split()
# Headers of other libraries, and the folders that may include them.
LIBRARIES = {
    r"protobuf-c/.*|.*\.pb-c\.h": {"onnx"},
    r"cblas\.h|openblas.*": {"ops"},
    r"pcre2\.h": {"ops"},
    r"jpeglib\.h|png\.h|tiff.*\.h|webp/.*|openjpeg.*": {"ops", "io"},
    r"zlib\.h": {"io", "ops"},
    r"xxhash\.h": {"base", "plan"},
}
# What backends have in common, of which each includes itself and those before it.
SHARED = ("vmath", "layers")
# Sources that are compiled on a GPU: they include each other by name.
KERNELS = ("backends", "cuda", "kernels")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def library_fault(folder, name):
    for pattern, folders in LIBRARIES.items():
        if re.fullmatch(pattern, name) and folder not in folders:
            return f"<{name}> stays in {', '.join(sorted(folders))}"
    return None


def source_fault(parts, quote, name):
    """What is wrong about a line of src/<parts>; None if nothing is."""
    folder = parts[0]
    if fault := library_fault(folder, name):
        return fault
    if quote == "<":
        return None
    target = name.split("/")
    if name.startswith("assay/"):
        return "public headers are included as <assay/...>"
    if parts[:len(KERNELS)] == KERNELS and len(target) == 1:
        return None
    if len(target) < 2 or target[0] not in ORDER:
        return "name the folder: \"folder/file.h\""
    if ORDER.index(target[0]) > ORDER.index(folder):
        return f"{folder} stands before {target[0]}"
    if folder == target[0] == "backends" and len(target) > 2 and len(parts) > 2 and parts[1] != target[1]:
        if target[1] not in SHARED or parts[1] in SHARED[:SHARED.index(target[1])]:
            return "backends do not include each other"
    return None


def public_fault(_, quote, name):
    if name.startswith("assay/"):
        return None if quote == "<" else "public headers are included as <assay/...>"
    return None if quote == "<" and "/" not in name else "public headers include only <assay/...> and the C library"


def example_fault(_, quote, name):
    return None if quote == "<" else "examples include only <assay/...> and the system"


def integration_fault(_, quote, name):
    return None if quote == "<" or "/" not in name else "integrations include only <assay/...>, the system and their own folder"


def main(root):
    root = pathlib.Path(root)
    wrong = files = 0
    for top, check in (("src", source_fault), ("include/assay", public_fault), ("examples", example_fault),
                       ("integrations", integration_fault)):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in (".c", ".h", ".inc", ".cu", ".cc"):
                continue
            files += 1
            parts = path.relative_to(root / top).parts
            if top == "src" and parts[0] not in ORDER:
                print(f"{path.relative_to(root)}: '{parts[0]}' is not a folder of the design")
                wrong += 1
                continue
            text = path.read_text(encoding="utf-8")
            for match in INCLUDE.finditer(text):
                if fault := check(parts, *match.groups()):
                    line = text.count("\n", 0, match.start(1)) + 1
                    print(f"{path.relative_to(root)}:{line}: {match.group(2)}: {fault}")
                    wrong += 1
    print(f"{files} files, {wrong} wrong includes")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
