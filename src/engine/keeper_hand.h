#ifndef AFZ_KEEPER_HAND_H
#define AFZ_KEEPER_HAND_H
/* Books: made, handed over a socket to who may have one, and filled.
 *
 * A book is made empty, in tens of microseconds: of all the processes that a shell starts, few live
 * for long and fewer allocate much. Those that do get all of its memory soon (afz_book_fill), so
 * that it is charged to us; what a program touches before that is its own, some tens of KB.
 */
#include <sys/types.h>

#include "wire.h"

/* The next who asks, on a socket that does not block: the connection, who it is and what it wishes:
 * a book, or (keeper_ask.h) an answer.
 * -EAGAIN: nobody; -EPERM, -EPROTO: one who gets nothing (the connection is closed). */
int afz_hand_accept(int listen_fd, pid_t *ret_pid, struct afz_book_wish *ret);

/* What stands in a book from the beginning; see there. And what goes with it. */
struct afz_hand {
        pid_t pid;
        uint64_t mean_bytes;
        int room_fd; /* goes with it (keeper_room.h); 0 or less: none does */
};

/* Makes a book and hands it over: it is that process's from here on. Its descriptor stays ours,
 * too. */
int afz_hand_over(int fd, const struct afz_hand *hand, struct afz_book **ret, int *ret_fd);

/* Takes the memory for all of it; the descriptor is closed. */
int afz_book_fill(int *fd);
void afz_book_unmap(struct afz_book *book);

#endif
