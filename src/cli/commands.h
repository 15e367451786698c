#ifndef AFZ_COMMANDS_H
#define AFZ_COMMANDS_H
/* The commands, one a file cmd_*.c, and the program made of them (program.c). To add a command,
 * write its file, declare its row here and name it in program.c; help, man page and completion
 * follow. */
#include "command.h"

extern const struct afz_command afz_command_run, afz_command_attach, afz_command_watch,
        afz_command_why, afz_command_report, afz_command_runs, afz_command_export, afz_command_set,
        afz_command_convert, afz_command_doctor, afz_command_capture, afz_command_demo,
        afz_command_python, afz_command_kernel, afz_command_help, afz_command_completion,
        afz_command_man;

/* The argument by which demo starts this very program as the trainer; main.c has it. */
#define AFZ_TRAINER_NAME "afz-trainer"

/* --policy, of run and of what runs it; in the order of enum afz_policy, and NULL. */
extern const char *const afz_policy_choices[];

extern const struct afz_program afz_program;

/* Says "antifreeze: ..." on stderr. */
void afz_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, and returns status, so that it can be returned. */
int afz_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Columns of the terminal on stdout; 80 where there is none. */
int afz_columns(void);

/* "12:03:11", the local time now; "" when it is not known. Returns buf. */
#define AFZ_TIME_OF_DAY_CAP 16
char *afz_time_of_day(char buf[AFZ_TIME_OF_DAY_CAP]);

/* A pid given as an operand: digits, and not 0. */
int afz_operand_pid(const char *text, uint64_t *ret);

#endif
