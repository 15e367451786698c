#ifndef AFZ_PROBE_HAND_H
#define AFZ_PROBE_HAND_H
/* The keeper's part of the handover of books, for tests, and whether a book is whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "antifreeze/wire.h"

static inline int hand_listen(const char *path)
{
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (fd < 0 || strlen(path) >= sizeof at.sun_path)
                return -1;
        strcpy(at.sun_path, path);
        (void)unlink(path);
        return bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 64) == 0 ? fd
                                                                                             : -1;
}

/* A new book, mapped; its descriptor is not sealed yet. */
static inline struct afz_book *hand_make(uint32_t pid, uint64_t mean_bytes, uint64_t seed,
                                         int *ret_fd)
{
        size_t size = AFZ_BOOK_BYTES;
        int fd = memfd_create("book", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return NULL;
        struct afz_book *book = MAP_FAILED;
        if (ftruncate(fd, (off_t)size) == 0)
                book = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        if (book == MAP_FAILED) {
                close(fd);
                return NULL;
        }
        book->magic = AFZ_BOOK_MAGIC;
        book->pid = pid;
        book->mean_bytes = mean_bytes;
        book->seed = seed;
        *ret_fd = fd;
        return book;
}

static inline void hand_seal(int fd)
{
        (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
}

/* room: -1: none goes with it. */
static inline void hand_send(int to, int fd, int room)
{
        char byte = 1;
        const int both[] = {fd, room};
        size_t size = room < 0 ? sizeof fd : sizeof both;
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(2 * sizeof(int))];
        } control = {0};
        struct iovec data = {&byte, 1};
        struct msghdr message = {.msg_iov = &data,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = CMSG_SPACE(size)};
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(&control.head), both, size);
        (void)sendmsg(to, &message, MSG_NOSIGNAL);
}

/* A connection on which a right wish came, or -1. */
static inline int hand_accept(int listener, uint32_t *ret_pid, struct afz_book_wish *ret)
{
        struct ucred who;
        socklen_t size = sizeof who;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
                return -1;
        if (recv(fd, ret, sizeof *ret, 0) == (ssize_t)sizeof *ret && ret->magic == AFZ_BOOK_MAGIC &&
            getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0) {
                *ret_pid = (uint32_t)who.pid;
                return fd;
        }
        close(fd);
        return -1;
}

/* As the real keeper does once a second. */
static inline void hand_reset_marks(struct afz_book *book)
{
        for (unsigned i = 0; i < AFZ_BOOK_SITES; i++) {
                struct afz_book_site *s = &book->site[i];
                if (atomic_load_explicit(&s->kind, memory_order_relaxed) == AFZ_SITE_FREE)
                        continue;
                uint64_t live = atomic_load(&s->live_bytes);
                atomic_store(&s->high_bytes, live);
                atomic_store(&s->low_bytes, live);
        }
        atomic_store(&book->high_bytes, atomic_load(&book->live_bytes));
}

/* The sums of a book against its blocks, when nobody writes any more. NULL: all is well; else what
 * is not. */
static inline const char *hand_fault(const struct afz_book *book)
{
        uint64_t live = 0, blocks = 0, *held = calloc(AFZ_BOOK_SITES, sizeof *held);
        const char *fault = NULL;
        if (!held)
                return "no memory";
        for (unsigned i = 0; i < AFZ_BOOK_BLOCKS; i++) {
                if (book->address[i] == 1)
                        fault = "a block in work";
                if (book->address[i] <= 1)
                        continue;
                blocks++;
                held[AFZ_BLOCK_SITE(book->block[i].site_size) % AFZ_BOOK_SITES] +=
                        book->block[i].weight_bytes;
        }
        for (unsigned i = 0; i < AFZ_BOOK_SITES; i++) {
                const struct afz_book_site *s = &book->site[i];
                live += s->live_bytes;
                if (s->live_bytes != held[i])
                        fault = "a site's live bytes are not those of its blocks";
                else if (s->key != 0 && s->kind == AFZ_SITE_FREE)
                        fault = "a site is not finished";
        }
        free(held);
        if (book->inside != 0)
                return "somebody is inside";
        if (book->live_bytes != live)
                return "what is live in all is not the sum of the sites";
        if (book->samples - book->frees != blocks)
                return "samples less frees are not the blocks";
        return fault;
}

#endif
