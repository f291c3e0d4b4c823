// GPUs of which it is known how their tensor cores sum.
#include "backends/emu/like/gpus.h"

#include <stddef.h>

const emu_gpu_t emu_gpus[] = {
    {"emu:sm_80", "A100, A30", 8, 24, false, false},
    {"emu:sm_86", "A2 and others of its kind", 8, 24, false, false},
    {"emu:sm_89", "L40S, RTX of the Ada generation", 8, 24, false, false},
    {"emu:sm_90", "H100, H200", 16, 25, true, true},
    {"emu:sm_100", "B200", 16, 25, false, false},
    {"emu:sm_120", "RTX PRO 6000 of the Blackwell generation", 16, 25, false, false},
    {NULL, NULL, 0, 0, false, false},
};

const char* const emu_gpu_names[] = {"emu:sm_80",  "emu:sm_86",  "emu:sm_89", "emu:sm_90",
                                     "emu:sm_100", "emu:sm_120", NULL};
