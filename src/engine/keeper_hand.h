#ifndef AFZ_KEEPER_HAND_H
#define AFZ_KEEPER_HAND_H
/* Books: made ahead, and handed over a socket to who may have one. */
#include <sys/types.h>

#include "wire.h"

/* A book that nobody has yet. */
struct afz_blank {
        struct afz_book *book;
        int fd;
};

/* Its memory is there when this returns, and charged to us. */
int afz_blank_make(uint64_t mean_bytes, struct afz_blank *ret);
void afz_blank_drop(struct afz_blank *blank);
void afz_book_unmap(struct afz_book *book);

/* The next who asks, on a socket that does not block: the connection, who it is and what it wishes.
 * -EAGAIN: nobody; -EPERM, -EPROTO: one who gets nothing (the connection is closed). */
int afz_hand_accept(int listen_fd, pid_t *ret_pid, struct afz_book_wish *ret);

/* Hands the book over: it is that process's from here on, and the descriptor is closed. */
int afz_hand_over(int fd, struct afz_blank *blank, pid_t pid);

#endif
