// The front end `assay trtexec`; also where the program is called by a link named trtexec.
#ifndef ASSAY_CLI_TRTEXEC_TRTEXEC_H_
#define ASSAY_CLI_TRTEXEC_TRTEXEC_H_

// What stands behind the name. Returns trtexec's exit code: 0 passed or help, 1 anything else.
int assay_trtexec(int argc, char** argv);

#endif  // ASSAY_CLI_TRTEXEC_TRTEXEC_H_
