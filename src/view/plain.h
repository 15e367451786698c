#ifndef AFZ_PLAIN_H
#define AFZ_PLAIN_H
/* The plain line: what a tick has to say where there is no terminal, in ASCII.
 *
 *      12:03:11 ram 9.8/15.5G job 6.2G (4) swap 0.3/2.0G in 0B/s cpu 87% psi mem 0% io 12% | cpu
 *
 * Fields keep their order; what is not known is "-". "job" is its need and in brackets its
 * processes, left out when the machine is watched. "cpu" is of one core, the job's or else the
 * machine's. "gpu", left out where there is none, is "10.1/24.0G 97%": the sum of memory and the
 * mean of utilisation over all GPUs. What holds the job back comes last, in as many words as fit
 * AFZ_PLAIN_COLUMNS.
 */
#include "lines_now.h"
#include "out.h"
#include "window.h"

enum { AFZ_PLAIN_COLUMNS = 120 };

/* `clock` is the time of day; NULL: left out. Writes one line with its newline. */
void afz_plain_line(struct afz_out *out, const struct afz_window *window, const char *clock);

/* The lines of the program that hold most, as many as fit; nothing where they are not known:
 *
 *      12:03:11 lines 3.8G: train.py:33 in load() 1.2G +210M/min, data.py:3 in load() 0.9G
 */
void afz_plain_lines(struct afz_out *out, const struct afz_lines_now *lines, const char *clock);

/* What the memory is for, as frameworks tell it: a line for the host and one for GPU memory, each
 * only where something is told. */
void afz_plain_uses(struct afz_out *out, const struct afz_lines_now *lines, const char *clock);

#endif
