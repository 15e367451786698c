#ifndef FAKE_CGROUP2_H
#define FAKE_CGROUP2_H
/* Makes ordinary folders behave a little like cgroup v2, by standing in for three system calls of
 * the program that is tested: a folder that is made has the kernel's files, a folder that is
 * removed takes them along, and a write may be refused or altered.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "count_of.h"

static const struct {
        const char *name, *text;
} fake_files[] = {
        {"cgroup.controllers", "cpu io memory pids\n"},
        {"cgroup.subtree_control", ""},
        {"cgroup.procs", ""},
        {"cgroup.events", "populated 1\nfrozen 0\n"},
        {"cgroup.freeze", "0\n"},
        {"cgroup.kill", ""},
        {"cpu.weight", "100\n"},
        {"io.weight", "default 100\n"},
        {"memory.current", "1000000\n"},
        {"memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\noom_group_kill 0\n"},
        {"memory.high", "max\n"},
        {"memory.max", "max\n"},
        {"memory.oom.group", "0\n"},
        {"memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=9\n"
                            "full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"},
        {"memory.reclaim", ""},
        {"memory.stat", "anon 700\nfile 5000\nkernel 40\nsock 1\nshmem 30\nslab_reclaimable 10\n"},
        {"memory.swap.current", "200\n"},
        {"memory.swap.max", "max\n"},
        {"pids.current", "6\n"},
        {"pids.max", "max\n"},
};

/* What the next writes to files whose path ends in `file` meet. */
struct fake_cgroup2_fault {
        const char *file;
        int err;          /* refused with this errno */
        const char *text; /* or something else is written */
};

static struct fake_cgroup2_fault fault;
static const char *without;

/* NULL: no more. */
static void fake_cgroup2_fault(const struct fake_cgroup2_fault *f)
{
        fault = f ? *f : (struct fake_cgroup2_fault){0};
}

/* This file is not in folders made from now on (an older kernel); NULL: all are. */
static void fake_cgroup2_without(const char *file)
{
        without = file;
}

static void put_file(int dir_fd, const char *name, const char *text)
{
        int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0)
                return;
        if (write(fd, text, strlen(text)) < 0)
                fprintf(stderr, "fake_cgroup2: %s cannot be written\n", name);
        close(fd);
}

int mkdirat(int dir_fd, const char *name, mode_t mode)
{
        if (syscall(SYS_mkdirat, dir_fd, name, mode) < 0)
                return -1;
        int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (size_t i = 0; fd >= 0 && i < AFZ_COUNT_OF(fake_files); i++)
                if (!without || strcmp(without, fake_files[i].name) != 0)
                        put_file(fd, fake_files[i].name, fake_files[i].text);
        if (fd >= 0)
                close(fd);
        return 0;
}

/* As the kernel: busy while it has children. (Processes do not keep it here.) */
int unlinkat(int dir_fd, const char *name, int flags)
{
        struct stat st;
        int fd = flags & AT_REMOVEDIR
                         ? openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
                         : -1;
        if (fd < 0)
                return (int)syscall(SYS_unlinkat, dir_fd, name, flags);
        bool leaf = fstat(fd, &st) == 0 && st.st_nlink <= 2;
        for (size_t i = 0; leaf && i < AFZ_COUNT_OF(fake_files); i++)
                syscall(SYS_unlinkat, fd, fake_files[i].name, 0);
        close(fd);
        if (!leaf) {
                errno = ENOTEMPTY;
                return -1;
        }
        return (int)syscall(SYS_unlinkat, dir_fd, name, flags);
}

static bool is_at_fault(int fd)
{
        char link[64], path[512];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, path, sizeof path - 1);
        size_t m = fault.file ? strlen(fault.file) : 0;
        return m > 0 && n >= (ssize_t)m && memcmp(path + n - m, fault.file, m) == 0;
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
        if (!is_at_fault(fd))
                return syscall(SYS_pwrite64, fd, buf, n, offset);
        if (fault.err != 0) {
                errno = fault.err;
                return -1;
        }
        syscall(SYS_pwrite64, fd, fault.text, strlen(fault.text), offset);
        return (ssize_t)n;
}

#endif
