#include "keeper_room.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Above a need that was proved before the same need again is granted: counters are not exact. */
#define BREATH_BYTES (UINT64_C(1) << 20)

static int seal(int fd)
{
        return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ? -errno : 0;
}

int afz_keeper_room_make(struct afz_room **ret, int *ret_fd)
{
        int fd = memfd_create("antifreeze-room", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        int r = ftruncate(fd, (off_t)AFZ_ROOM_FILE_BYTES) < 0 ? -errno : 0;
        struct afz_room *room = MAP_FAILED;
        if (r == 0) {
                room = mmap(NULL, AFZ_ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                r = room == MAP_FAILED ? -errno : seal(fd);
        }
        if (r < 0) {
                afz_keeper_room_unmap(room == MAP_FAILED ? NULL : room);
                close(fd);
                return r;
        }
        room->magic = AFZ_ROOM_MAGIC;
        atomic_store(&room->room_bytes, AFZ_ROOM_ALL);
        *ret = room;
        *ret_fd = fd;
        return 0;
}

void afz_keeper_room_unmap(struct afz_room *room)
{
        if (room)
                (void)munmap(room, AFZ_ROOM_BYTES);
}

static uint64_t less(uint64_t a, uint64_t b)
{
        return a > b ? a - b : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

static uint64_t line_of(const struct afz_ladder *ladder)
{
        const struct afz_lines *lines = &ladder->setup.lines;
        bool settled = !ladder->setup.refuses && ladder->proved_bytes > 0;
        if (settled || ladder->stage >= AFZ_STAGE_ASKED)
                return lines->stop_bytes;
        uint64_t middle = lines->act_bytes + (lines->stop_bytes - lines->act_bytes) / 2;
        uint64_t proved = least(ladder->proved_bytes + BREATH_BYTES, lines->stop_bytes);
        return proved > middle ? proved : middle;
}

static uint64_t left_of_machine(const struct afz_ladder *ladder, const struct afz_pulse *pulse,
                                uint64_t need_bytes, uint64_t swap_bytes)
{
        const struct afz_lines *lines = &ladder->setup.lines;
        uint64_t available, swap = 0;
        bool own = ladder->pressure.own || need_bytes >= lines->act_bytes;
        if (!own || lines->low_bytes == 0 || !afz_pulse_get(pulse, AFZ_PULSE_AVAILABLE, &available))
                return AFZ_ROOM_ALL;
        (void)afz_pulse_get(pulse, AFZ_PULSE_SWAP_FREE, &swap);
        return less(available + least(swap, swap_bytes), lines->low_bytes);
}

uint64_t afz_keeper_room_left(const struct afz_ladder *ladder, const struct afz_pulse *pulse,
                              uint64_t swap_bytes)
{
        uint64_t need;
        if (!afz_lines_need(&ladder->setup.lines, pulse, &need))
                return AFZ_ROOM_ALL;
        return least(less(line_of(ladder), need), left_of_machine(ladder, pulse, need, swap_bytes));
}

void afz_keeper_room_write(struct afz_room *room, uint64_t looked_ns, uint64_t room_bytes)
{
        if (!room)
                return;
        atomic_store_explicit(&room->room_bytes, room_bytes, memory_order_relaxed);
        /* Last: who sees this time sees what belongs to it, or newer. */
        atomic_store_explicit(&room->looked_ns, looked_ns, memory_order_release);
        atomic_fetch_add_explicit(&room->looks, 1, memory_order_release);
}
