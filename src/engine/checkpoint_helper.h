#ifndef AFZ_CHECKPOINT_HELPER_H
#define AFZ_CHECKPOINT_HELPER_H
/* The process that runs the checkpoint command, one at a time; see checkpoint.h. Packets of this
 * one shape go both ways.
 */
#include <stdint.h>
#include <sys/types.h>

struct afz_checkpoint_word {
        uint32_t number; /* of the request */
        int32_t value;   /* to it: the job's pid, 0 unknown, -1 end what runs.
                          * from it: the exit status, or minus the signal */
};

/* Forks it; *ret_fd is our end, non-blocking. It is in a session of its own, with default signals,
 * and has none of our descriptors but the standard ones. It ends when our end is closed. */
int afz_checkpoint_helper_start(const char *command, pid_t *ret_pid, int *ret_fd);

/* -EPIPE: the helper is gone; -EAGAIN: it is stuck. */
int afz_checkpoint_helper_send(int fd, const struct afz_checkpoint_word *word);
/* 0; -EAGAIN: nothing yet; -EPIPE: the helper is gone. */
int afz_checkpoint_helper_read(int fd, struct afz_checkpoint_word *ret);

#endif
