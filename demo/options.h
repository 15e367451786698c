/*
 * The trainer's options: rows in one table, from which the help and the list of pitfalls are made.
 *
 * A pitfall is an option like any other; its field is 0 when it is off, else its size, rate or
 * step. Parsing never prints and never exits: what is wrong with an argument is returned as one
 * line of text, without control characters whatever the argument held.
 */
#ifndef AFZ_OPTIONS_H
#define AFZ_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct afz_options {
        uint64_t epochs;
        uint64_t steps; /* 0: no limit but the epochs */
        uint64_t batch;
        double rate;        /* 0: the optimiser's own */
        uint64_t optimizer; /* enum afz_optim_kind */
        uint64_t seed;
        uint64_t threads;
        uint64_t workers;     /* 0: samples are drawn by the main thread */
        uint64_t samples;     /* at least batch */
        uint64_t log_every;   /* steps; 0: about every 3200 samples */
        const char *data_dir; /* borrowed from argv; NULL: a new one */
        bool quiet, help, list_pitfalls;

        uint64_t retain_history_bytes; /* a step */
        uint64_t whole_dataset_bytes;  /* all copies together */
        uint64_t large_batch;
        uint64_t leaky_layers;
        uint64_t spin_step, deadlock_step;
        uint64_t slow_disk_bytes; /* a second */
        bool retain_intermediate, log_everything;
};

enum { AFZ_OPTIONS_ERROR_SIZE = 256 };

/*
 * 0, or -EINVAL with one line in error. Fields that follow from others are settled here:
 * --large-batch sets the batch,
 * --whole-dataset the number of samples, and there are never fewer samples than one batch.
 */
int afz_trainer_options_parse(int argc, char *const argv[], struct afz_options *ret,
                              char error[AFZ_OPTIONS_ERROR_SIZE]);

/* Digits, then K, M, G (of 1024) or nothing. 0, -EINVAL, or -ERANGE when it does not fit. */
int afz_trainer_options_parse_size(const char *text, uint64_t *ret);

void afz_trainer_options_print_help(FILE *out);

/* A line for each pitfall: its name, a tab, what it does. "--NAME" alone switches it on. */
void afz_trainer_options_print_pitfalls(FILE *out);

#endif
