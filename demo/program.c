#include "program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "options.h"
#include "trainer.h"

/* A signal handler has nowhere else to write to. */
static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
        stop_signal = number;
}

/* The first signal asks for a clean end after the step. The second of its kind ends even a run that
 * hangs: the default action is back by then. A signal that the caller has us ignore (nohup) stays
 * ignored. */
static void catch_signal(int number)
{
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
        struct sigaction before;

        sigemptyset(&action.sa_mask);
        if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
                sigaction(number, &action, NULL);
}

int afz_trainer_main(int argc, char *argv[])
{
        char error[AFZ_OPTIONS_ERROR_SIZE];
        struct afz_options options;

        if (afz_trainer_options_parse(argc, argv, &options, error) < 0) {
                fprintf(stderr, "afz-trainer: %s\n", error);
                return 2;
        }
        if (options.help) {
                afz_trainer_options_print_help(stdout);
                return fflush(stdout) == 0 ? EXIT_SUCCESS : 2;
        }
        if (options.list_pitfalls) {
                afz_trainer_options_print_pitfalls(stdout);
                return fflush(stdout) == 0 ? EXIT_SUCCESS : 2;
        }

        /* A line is seen when it is written, also in a pipe. */
        setvbuf(stdout, NULL, _IOLBF, 0);
        catch_signal(SIGINT);
        catch_signal(SIGTERM);
        return afz_trainer_run(&options, &stop_signal);
}
