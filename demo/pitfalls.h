/*
 * The pitfalls that act in each step: history and intermediate results that are kept, a log of
 * everything, a loop without end, a deadlock. (Those of the data live in source.h, that of the
 * network in net.h; a large batch needs no code at all.)
 *
 * They are honest: what is kept is really this step's activations, what hangs really hangs. To add
 * one is to add a row to the table in pitfalls.c and one to the options.
 */
#ifndef AFZ_PITFALLS_H
#define AFZ_PITFALLS_H

#include <stdint.h>

#include "net.h"
#include "options.h"
#include "scratch.h"

struct afz_pitfalls;

/* options must outlive the handle. scratch is needed for --log-everything only, else may be NULL.
 */
int afz_pitfalls_new(const struct afz_options *options, struct afz_scratch *scratch,
                     struct afz_pitfalls **ret);
struct afz_pitfalls *afz_pitfalls_free(struct afz_pitfalls *pitfalls);

/*
 * After step (counted from 1) is done, with its pass. May never return, if that is the pitfall. On
 * failure (memory or disk is full) -errno, and *ret_name says which pitfall it was.
 */
int afz_pitfalls_step(struct afz_pitfalls *pitfalls, uint64_t step, const struct afz_pass *pass,
                      const char **ret_name);

#endif
