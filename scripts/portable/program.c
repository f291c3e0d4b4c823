// bin/assay of the portable wheel: the program, which is part of the wheel's library.
int assay_program_main(int argc, char** argv);

int main(int argc, char** argv) { return assay_program_main(argc, argv); }
