// The front end `assay trtexec`; also where the program is called by a link named trtexec.
#ifndef ASSAY_FRONTENDS_TRTEXEC_TRTEXEC_H_
#define ASSAY_FRONTENDS_TRTEXEC_TRTEXEC_H_

#include "cli/verbs.h"

// What stands after the name. Returns trtexec's exit code: 0 passed or help, 1 anything else.
int assay_trtexec(int argc, char** argv);
// The flags, for completion scripts.
assay_status_t assay_trtexec_complete(completion_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_TRTEXEC_TRTEXEC_H_
