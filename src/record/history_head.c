/* What only the recording knows of a run: its first frame, and nothing else of it, because there
 * may be a thousand of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flight_about.h"
#include "flight_file.h"
#include "flight_frame.h"
#include "history_own.h"

/* Of the file's first bytes: what must be ours. The names that follow may be another version's. */
enum { MAGIC_AND_VERSION = 12 };

/* The texts at the front of the frame, in the order of afz_about_put(). */
static int take_texts(struct afz_take take, const char *id, char **ret_cmd, char **ret_git)
{
        char run[AFZ_RUN_ID_CAP], boot_id[AFZ_BOOT_ID_CAP], host[65];
        char cmd[AFZ_TEXT_CAP], cwd[AFZ_TEXT_CAP], git[256];
        if (!afz_take_text(&take, run, sizeof run) ||
            !afz_take_text(&take, boot_id, sizeof boot_id) ||
            !afz_take_text(&take, host, sizeof host) || !afz_take_text(&take, cmd, sizeof cmd) ||
            !afz_take_text(&take, cwd, sizeof cwd) || !afz_take_text(&take, git, sizeof git) ||
            strcmp(run, id) != 0)
                return -EBADMSG;
        char *own_cmd = strdup(cmd), *own_git = strdup(git);
        if (!own_cmd || !own_git) {
                free(own_cmd);
                free(own_git);
                return -ENOMEM;
        }
        *ret_cmd = own_cmd;
        *ret_git = own_git;
        return 0;
}

int afz_history_head(int runs_fd, const char *id, char **ret_cmd, char **ret_git)
{
        unsigned char buf[AFZ_FILE_HEAD + AFZ_FRAME_HEAD + AFZ_ABOUT_MAX];
        unsigned char first[AFZ_FILE_HEAD], head[AFZ_FRAME_HEAD];
        const unsigned char *frame = buf + AFZ_FILE_HEAD, *payload = frame + AFZ_FRAME_HEAD;
        char path[AFZ_RUN_ID_CAP + sizeof AFZ_FLIGHT_NAME + 1];

        snprintf(path, sizeof path, "%s/%s", id, AFZ_FLIGHT_NAME);
        int fd = openat(runs_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        ssize_t n = pread(fd, buf, sizeof buf, 0);
        close(fd);
        afz_file_head(first, 0);
        if (n < AFZ_FILE_HEAD + AFZ_FRAME_HEAD || memcmp(buf, first, MAGIC_AND_VERSION) != 0)
                return -EBADMSG;
        size_t len = (size_t)frame[8] | (size_t)frame[9] << 8 | (size_t)frame[10] << 16 |
                     (size_t)frame[11] << 24;
        if (len > (size_t)n - AFZ_FILE_HEAD - AFZ_FRAME_HEAD)
                return -EBADMSG;
        /* A frame's head follows from what is in it: so it is whole, and what it should be. */
        afz_frame_head(head, AFZ_FRAME_ABOUT, payload, len);
        if (memcmp(head, frame, sizeof head) != 0)
                return -EBADMSG;
        return take_texts((struct afz_take){payload, len}, id, ret_cmd, ret_git);
}
