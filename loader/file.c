#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int afz_file_open(int folder, const char *path, uint64_t *ret_bytes)
{
        struct stat st;
        int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return -errno;
        int r = fstat(fd, &st) < 0 ? -errno : !S_ISREG(st.st_mode) ? -EINVAL : 0;
        if (r < 0) {
                close(fd);
                return r;
        }
        *ret_bytes = (uint64_t)st.st_size;
        return fd;
}

int afz_folder_open(int folder, const char *path)
{
        int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
        return fd < 0 ? -errno : fd;
}

int afz_file_text(int folder, const char *path, uint64_t most_bytes, char **ret,
                  uint64_t *ret_bytes)
{
        uint64_t bytes;
        int fd = afz_file_open(folder, path, &bytes);
        if (fd < 0)
                return fd;
        struct afz_scratch uncounted = {0};
        char *text = bytes <= most_bytes ? malloc(bytes + 1) : NULL;
        int r = bytes > most_bytes ? -EFBIG : !text ? -ENOMEM : 0;
        if (r == 0)
                r = afz_dataset_read(fd, text, bytes, 0, &uncounted);
        close(fd);
        if (r < 0) {
                free(text);
                return r;
        }
        text[bytes] = '\0';
        *ret = text;
        *ret_bytes = bytes;
        return 0;
}

const char *afz_error_text(int error)
{
        switch (error) {
        case -ENODATA:
                return "it ends too early (cut off, or it shrank while it was read)";
        case -EINVAL:
                return "it is not a plain file";
        case -ENOENT:
                return "it is not there";
        case -EFBIG:
                return "it is too large to be one";
        case -ENOMEM:
                return "the budget leaves no room for its index: a larger budget helps";
        default:
                return strerror(error < 0 ? -error : error);
        }
}

void afz_field_name(struct afz_field *field, const char *path)
{
        size_t end = strlen(path);
        while (end > 0 && path[end - 1] == '/')
                end--;
        size_t start = end;
        while (start > 0 && path[start - 1] != '/')
                start--;
        const char *dot = memchr(path + start, '.', end - start);
        size_t length = dot && dot > path + start ? (size_t)(dot - path) - start : end - start;
        if (length >= sizeof field->name)
                length = sizeof field->name - 1;
        memcpy(field->name, path + start, length);
        field->name[length] = '\0';
}

int afz_why_left_out(char why[AFZ_WHY_MAX], const char *path, const char *what, const char *package)
{
        return afz_why(
                why, -ENOTSUP,
                "%s needs %s, which this build was made without: install it (Debian, Ubuntu: "
                "apt-get install %s) and build anew",
                path, what, package);
}

int afz_load_bad(const struct afz_load *load, uint32_t from, uint32_t count)
{
        memset(load->bad + from, 1, count);
        return 0;
}
