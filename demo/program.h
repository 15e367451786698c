/*
 * The trainer as a program: options, signals, the run. afz-trainer is nothing else; `antifreeze`
 * has it inside, so that its demo needs no other file.
 */
#ifndef AFZ_PROGRAM_H
#define AFZ_PROGRAM_H

/* Returns the exit status. The lines that it prints call it afz-trainer. */
int afz_trainer_main(int argc, char *argv[]);

#endif
