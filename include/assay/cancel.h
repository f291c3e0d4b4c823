// Cancelling: long calls that end before they are done, because another thread, or a signal
// handler, asks for it.
//
//   assay_cancel_t* cancel;
//   assay_cancel_create(&cancel);
//   assay_cancel_watch(cancel);                    in the thread that makes the calls
//   assay_check_run(check, inputs, golden);        elsewhere: assay_cancel_request(cancel)
//   assay_cancel_watch(NULL);
//
// All that evaluates, compiles or runs a model looks at what its thread watches: engines, contexts'
// runs, sessions, checks, tuning, audits, certificates, edits, experiments, golden of a
// reference. It ends between two nodes or layers, and within long products and convolutions, as any
// call that fails does: with CANCELLED, nothing leaks, and what out_ parameters point at stays as
// it was. A check, a tuning or a session that was cancelled can only be destroyed or run as after
// another failure. Kernels of other libraries run to their end.
#ifndef ASSAY_CANCEL_H_
#define ASSAY_CANCEL_H_

#include <assay/status.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_cancel assay_cancel_t;  // one owner

// Errors: NO_MEMORY
ASSAY_API assay_status_t assay_cancel_create(assay_cancel_t** out);
// No thread may watch it any more. NULL is allowed.
ASSAY_API void assay_cancel_destroy(assay_cancel_t* cancel);

// Calls of the threads that watch it end, and so does every later one, until it is reset.
// Threads: any, and signal handlers
ASSAY_API void assay_cancel_request(assay_cancel_t* cancel);
ASSAY_API bool assay_cancel_is_requested(const assay_cancel_t* cancel);
// Calls run again. Not while a call that watches it is under way: that one may miss the request.
ASSAY_API void assay_cancel_reset(assay_cancel_t* cancel);

// From now on the calls that this thread makes watch it, borrowed; NULL: none. Returns what was
// watched before, for a caller to put back.
ASSAY_API assay_cancel_t* assay_cancel_watch(assay_cancel_t* cancel);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_CANCEL_H_
