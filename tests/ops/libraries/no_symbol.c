// A library that is none of operators.
int assay_test_nothing(void);
int assay_test_nothing(void) { return 0; }
