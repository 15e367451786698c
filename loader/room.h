#ifndef AFZ_ROOM_H
#define AFZ_ROOM_H
/* How much memory is free to this process: of the machine, and of the control groups that it is in.
 * UINT64_MAX: nobody says. And on how many cores it may run. */
#include <stdbool.h>
#include <stdint.h>

uint64_t afz_room_bytes(void);
/* What could be free at the most: page cache of control groups that can be had back counts as free,
 * too. */
uint64_t afz_room_most_bytes(void);

/* Whether files of so many bytes had better not stay in the page cache: they would fill what is
 * free, and the next epoch would not find them there all the same. */
bool afz_room_is_scarce(uint64_t file_bytes);

uint32_t afz_room_cores(void);

/* Its parts, for tests: the answer out of the text of /proc/meminfo, and the folder out of that of
 * /proc/self/cgroup ("" if there is none; ret has `cap` bytes), and whether that is of version 2.
 */
uint64_t afz_room_of_meminfo(const char *text);
int afz_room_folder(const char *text, char *ret, uint64_t cap);

#endif
