// How OpenMP's threads wait, while others use the machine's CPUs.
//
// Between layers threads spin, so that the next one starts within a microsecond. Where other
// programs want the CPUs, that is the worst they can do: who spins uses up its share, is put aside
// for milliseconds, and every layer then waits for it. So while this process is seen to be put
// aside, its threads wait asleep; as soon as it is not, they spin again. Results do not depend on
// it.
#ifndef ASSAY_BASE_CONTENTION_H_
#define ASSAY_BASE_CONTENTION_H_

#include <stdbool.h>

// Looks, now and then, how long this process's threads had to wait for a CPU; costs some 20 ns
// otherwise. Called between layers, by any thread.
void assay_contention_watch(void);
// Whether threads wait asleep now. For tests.
bool assay_contention_is_felt(void);
// Has them do so, or not, until it is said otherwise or the next look. For tests.
void assay_contention_set(bool felt);

#endif  // ASSAY_BASE_CONTENTION_H_
