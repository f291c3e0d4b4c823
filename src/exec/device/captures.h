// Captures of a segment's kernel spans, by the addresses that they were made for: callers that
// bring their memory in turn run by one capture each.
#ifndef ASSAY_EXEC_DEVICE_CAPTURES_H_
#define ASSAY_EXEC_DEVICE_CAPTURES_H_

#include "exec/device.h"

enum { ASSAY_CAPTURES_OF_SPAN = 4 };  // the least recently used one makes room

typedef struct assay_captures assay_captures_t;

// A kernel span with addresses that it has run with.
typedef struct assay_captured {
  assay_device_ptr_t* at;    // of all slots, and scratch memory; NULL: none yet
  assay_capture_t* capture;  // of a run with these; NULL: none
  uint64_t used;
} assay_captured_t;

// Of a segment of so many layers.
assay_status_t assay_captures_create(const assay_device_driver_t* driver, size_t n_layers,
                                     assay_captures_t** out) ASSAY_MUST_USE;
void assay_captures_destroy(void* captures);

// Where the capture of the span that starts at this layer is, or goes, for these n addresses, of
// which there are as many each time. *out_again: it has run with them before; else they are noted.
assay_status_t assay_captures_find(assay_captures_t* c, size_t layer, const assay_device_ptr_t* at,
                                   size_t n, assay_captured_t** out,
                                   bool* out_again) ASSAY_MUST_USE;

// A span that the driver cannot capture: nobody tries it again.
bool assay_captures_refused(const assay_captures_t* c, size_t layer);
void assay_captures_refuse(assay_captures_t* c, size_t layer);

#endif  // ASSAY_EXEC_DEVICE_CAPTURES_H_
