// Constants in a device's memory: made once, shared by all contexts and all sizes of a plan.
#ifndef ASSAY_EXEC_DEVICE_RESIDENT_H_
#define ASSAY_EXEC_DEVICE_RESIDENT_H_

#include "exec/device.h"

typedef struct assay_resident assay_resident_t;

// The device outlives it.
assay_status_t assay_resident_create(assay_device_t* d, assay_resident_t** out) ASSAY_MUST_USE;
void assay_resident_destroy(assay_resident_t* r);  // NULL is allowed

// Puts what makes the bytes into the queue, which is waited for; host memory that it reads stays
// until then.
typedef assay_status_t assay_resident_fill_t(void* user, assay_queue_t* q, assay_device_ptr_t to);

// Where the bytes of a key lie: there already, or made now. The key names the constant, the form
// and how it is made. Kernels in any queue may read them from here on, as long as this lives.
// Threads: any; one fills at a time.
assay_status_t assay_resident_get(assay_resident_t* r, const char* key, size_t bytes,
                                  assay_resident_fill_t* fill, void* user,
                                  assay_device_ptr_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_EXEC_DEVICE_RESIDENT_H_
