// The vector functions one element at a time: for CPUs that have no other version.
#include "backends/vmath/lanes_plain.h"
#define LEVEL cpu_vmath_plain
#define LEVEL_NAME "plain"
#include "backends/vmath/arrays.h"
