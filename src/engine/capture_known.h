#ifndef AFZ_CAPTURE_KNOWN_H
#define AFZ_CAPTURE_KNOWN_H
/* The words that every Linux machine has, and which therefore say nothing about whose it is. A
 * capture keeps these and masks all others: what is not in a table is private. Pure.
 */
#include <stdbool.h>
#include <stddef.h>

#include "span.h"

/* A component of a path: "usr", "nvme0n1p2", "python3.11". */
bool afz_known_component(struct afz_span name);

/* What a link can lead to that is no path: "pipe:[12]", "anon_inode:[eventfd]". */
bool afz_known_target(struct afz_span target);

/* A folder of the cgroup tree: "user-1000.slice", "kubepods"; also the controllers of v1. */
bool afz_known_cgroup(struct afz_span name);

/* A network interface, and a power supply of /sys/class. */
bool afz_known_interface(struct afz_span name);
bool afz_known_supply(struct afz_span name);

/* The kind of a file system, and the source of one that has no device ("tmpfs"). */
bool afz_known_fs_type(struct afz_span type);
bool afz_known_fs_source(struct afz_span source);

/* What stands between the dashes of a kernel's release: "6.1.0", "18", "amd64". */
bool afz_known_release(struct afz_span part);

/* How many bytes at the start of a program's name are well known: all of "bash", "python3.11" and
 * "pt_data_worker", 7 of "jupyter-mine", 0 of "mine" and of "bashful". afz_role_guess() must see
 * no difference when the rest is masked. */
size_t afz_known_program(struct afz_span name);

/* The same for what Python runs after -m, and for the code after -c that multiprocessing gives. */
size_t afz_known_module(struct afz_span name);
size_t afz_known_code(struct afz_span code);

/* Variables of the environment that are kept when their value is a number. */
bool afz_known_variable(struct afz_span name);

#endif
