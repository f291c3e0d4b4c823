// NVIDIA's run-time compiler: needed where plans are built, not where they are run.
#ifndef ASSAY_BACKENDS_CUDA_NVRTC_H_
#define ASSAY_BACKENDS_CUDA_NVRTC_H_

#include <stddef.h>

#include "base/status.h"
#include "base/str.h"

typedef struct nvrtc_program* nvrtc_program_t;

enum { NVRTC_COMPILATION = 6 };  // what nvrtcCompileProgram gives for a source that is wrong

typedef struct cuda_compiler {
#define NVRTC_FUNCTION(name, parameters) int(*name) parameters;
#include "backends/cuda/nvrtc.inc"
#undef NVRTC_FUNCTION
  int major, minor;
} cuda_compiler_t;

// The compiler that is installed, opened once in a process; of the driver's major version, 13 or 12
// (1000 * major + ...). Errors: DEVICE: there is none, and where it was looked for
assay_status_t cuda_compiler_get(int driver_version, const cuda_compiler_t** out) ASSAY_MUST_USE;

// Of all kernels: they ask for fused multiply-adds by name, so nothing else may be contracted.
#define CUDA_COMPILER_OPTIONS "--fmad=false --std=c++17 --device-int128 --ptxas-options=-v"

typedef struct cuda_compilation {
  const char* file;     // the kernel's (kernels.h)
  const char* program;  // what it includes as "program.h"; NULL: it includes none
  const char* options;  // "-DT=f16 -DTILE=64": words without quotes
  int capability;       // 10 * major + minor
} cuda_compilation_t;

// Compiles a kernel's file; *out is freed with assay_free. log (may be NULL) gets what the compiler
// says. Errors: INTERNAL: the source is wrong (with the compiler's words); NO_MEMORY
assay_status_t cuda_compile(const cuda_compiler_t* c, const cuda_compilation_t* what, void** out,
                            size_t* out_bytes, assay_str_t* log) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_NVRTC_H_
