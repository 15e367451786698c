#ifndef AFZ_CONTROL_SOCKET_H
#define AFZ_CONTROL_SOCKET_H
/* The system's side of the control socket: listening, hearing who calls, taking one packet. Nothing
 * here blocks or allocates.
 */
#include <stddef.h>
#include <sys/types.h>

/* A listening socket at `path`, mode 0600; see afz_control_new(). */
int afz_control_listen(const char *path);

struct afz_peer {
        int fd;
        uid_t uid;
        pid_t pid; /* that called connect(); 0: of another pid namespace */
        int pidfd; /* of the same process; -1: not to be had */
};

/* The next caller. -EAGAIN: none waits. The descriptors are the caller's to close. */
int afz_control_accept(int listen_fd, struct afz_peer *ret);

/* Takes one packet; returns its length. *ret_sender is the process that sent it, by the kernel's
 * word. -EAGAIN: none waits. -ENOTCONN: the other end has closed, and nothing is left. -EMSGSIZE:
 * it was longer than cap, and is gone. -EBADF: it carries descriptors, and is still there: taking
 * it, or closing `fd`, could block. Other errors of the connection: more packets may be behind. */
ssize_t afz_control_receive(int fd, char *buf, size_t cap, pid_t *ret_sender);

/* Sends one packet; -EAGAIN when the other end does not read, -EPIPE when it has closed. */
int afz_control_send(int fd, const char *line, size_t n);

#endif
