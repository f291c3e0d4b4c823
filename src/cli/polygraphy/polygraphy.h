// The front end `assay polygraphy`, also by a link named `polygraphy`.
#ifndef ASSAY_CLI_POLYGRAPHY_POLYGRAPHY_H_
#define ASSAY_CLI_POLYGRAPHY_POLYGRAPHY_H_

// Runs what stands behind the program's name; returns the exit code: 0 passed, 1 failed, 2 misused.
int assay_polygraphy(int argc, char** argv);

#endif  // ASSAY_CLI_POLYGRAPHY_POLYGRAPHY_H_
