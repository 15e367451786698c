#include "room.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
        TEXT_BYTES = 4096,
        CACHE_PART = 2, /* of the free memory, one part in so many may become page cache of ours */
};

static int text_of(const char *path, char ret[TEXT_BYTES])
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, ret, TEXT_BYTES - 1);
        if (fd >= 0)
                close(fd);
        if (n < 0)
                return -ENODATA;
        ret[n] = '\0';
        return 0;
}

uint64_t afz_room_of_meminfo(const char *text)
{
        const char *at = strstr(text, "MemAvailable:");
        unsigned long long kib;
        return at && sscanf(at, "MemAvailable: %llu kB", &kib) == 1 && kib < UINT64_MAX >> 10
                       ? kib << 10
                       : UINT64_MAX;
}

int afz_room_folder(const char *text, char *ret, uint64_t cap)
{
        static const char *const part[2] = {":memory:", "0::"};
        for (int version = 1; version <= 2; version++) {
                const char *at = strstr(text, part[version - 1]);
                if (!at || (version == 2 && at != text && at[-1] != '\n'))
                        continue;
                at += strlen(part[version - 1]);
                uint64_t n = strcspn(at, "\n");
                if (n >= cap)
                        return -ENAMETOOLONG;
                memcpy(ret, at, n);
                ret[n] = '\0';
                return version;
        }
        return -ENODATA;
}

static uint64_t number_in(const char *folder, const char *name)
{
        char path[PATH_MAX], text[TEXT_BYTES], *end;
        if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path ||
            text_of(path, text) < 0)
                return UINT64_MAX;
        errno = 0;
        unsigned long long value = strtoull(text, &end, 10); /* "max" is no number */
        return end == text || errno ? UINT64_MAX : value;
}

/* Of one group: what its limit leaves. Page cache is counted as used; a little pessimistic, as it
 * should be. */
static uint64_t group_room(const char *folder, int version, bool is_most)
{
        uint64_t most = number_in(folder, version == 2 ? "memory.max" : "memory.limit_in_bytes");
        uint64_t used = is_most ? 0
                                : number_in(folder, version == 2 ? "memory.current"
                                                                 : "memory.usage_in_bytes");
        if (most == UINT64_MAX || used == UINT64_MAX)
                return UINT64_MAX;
        return most > used ? most - used : 0;
}

static uint64_t groups_room(bool is_most)
{
        char text[TEXT_BYTES], folder[PATH_MAX], path[PATH_MAX];
        uint64_t least = UINT64_MAX;
        if (text_of("/proc/self/cgroup", text) < 0)
                return least;
        int version = afz_room_folder(text, folder, sizeof folder);
        for (char *slash = folder; version > 0 && slash;) {
                int n = snprintf(path, sizeof path, "%s%s",
                                 version == 2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory", folder);
                uint64_t here =
                        n < (int)sizeof path ? group_room(path, version, is_most) : UINT64_MAX;
                least = here < least ? here : least;
                slash = strrchr(folder, '/');
                if (slash)
                        *slash = '\0';
        }
        return least;
}

static uint64_t room(bool is_most)
{
        char text[TEXT_BYTES];
        uint64_t machine =
                text_of("/proc/meminfo", text) < 0 ? UINT64_MAX : afz_room_of_meminfo(text);
        uint64_t groups = groups_room(is_most);
        return machine < groups ? machine : groups;
}

uint64_t afz_room_bytes(void)
{
        return room(false);
}

uint64_t afz_room_most_bytes(void)
{
        return room(true);
}

bool afz_room_is_scarce(uint64_t file_bytes)
{
        return file_bytes > afz_room_bytes() / CACHE_PART;
}

uint32_t afz_room_cores(void)
{
        cpu_set_t set;
        int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
        return n > 0 ? (uint32_t)n : 1;
}
