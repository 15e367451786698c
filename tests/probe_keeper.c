/* A small keeper for tests: runs a command with the probe before it, hands out books, and prints
 * what is in them as JSON when the command has ended.
 *
 * usage: probe_keeper [-m MEAN_BYTES] [-s SEED] [-b hang|refuse|short|unsealed] [-p OTHER.so]
 *                     PROBE.so SOCKET CMD...
 *
 * Its exit status is 0; how CMD ended is in "status". -b: a keeper that does not do as it should.
 * -p: a library that is preloaded behind the probe. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "antifreeze/wire.h"

enum { BOOKS = 512 };

static struct {
        struct afz_book *book[BOOKS];
        char program[BOOKS][64];
        int books;
        uint64_t mean_bytes, seed;
        const char *bad, *behind;
} keeper = {.mean_bytes = 1 << 20, .bad = "", .behind = ""};

static int make_book(uint32_t pid, const struct afz_book_wish *wish)
{
        size_t size = AFZ_BOOK_BYTES;
        int fd = memfd_create("book", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0 || keeper.books == BOOKS || ftruncate(fd, (off_t)size) < 0)
                return -1;
        struct afz_book *b =
                mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        if (b == MAP_FAILED)
                return -1;
        b->magic = AFZ_BOOK_MAGIC;
        b->pid = pid;
        b->mean_bytes = keeper.mean_bytes;
        b->seed = keeper.seed;
        if (strcmp(keeper.bad, "short") == 0)
                (void)!ftruncate(fd, 4096);
        if (strcmp(keeper.bad, "unsealed") != 0)
                (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
        if (keeper.bad[0] == '\0') {
                memcpy(keeper.program[keeper.books], wish->program, 63);
                keeper.book[keeper.books++] = b;
        }
        return fd;
}

static void send_fd(int to, int fd)
{
        char byte = 1;
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(sizeof(int))];
        } control = {0};
        struct iovec data = {&byte, 1};
        struct msghdr message = {.msg_iov = &data,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof control};
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
        (void)sendmsg(to, &message, MSG_NOSIGNAL);
}

static void serve(int listener)
{
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        struct afz_book_wish wish;
        struct ucred who;
        socklen_t size = sizeof who;
        if (fd < 0)
                return;
        if (strcmp(keeper.bad, "hang") == 0)
                return; /* and never answer */
        if (strcmp(keeper.bad, "refuse") != 0 &&
            recv(fd, &wish, sizeof wish, 0) == (ssize_t)sizeof wish &&
            wish.magic == AFZ_BOOK_MAGIC &&
            getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0) {
                int book = make_book((uint32_t)who.pid, &wish);
                if (book >= 0) {
                        send_fd(fd, book);
                        close(book);
                }
        }
        close(fd);
}

/* ---- printing ---- */

static void print_text(const char *text, size_t cap)
{
        putchar('"');
        for (size_t i = 0; i < cap && text[i]; i++) {
                unsigned char c = (unsigned char)text[i];
                if (c == '"' || c == '\\' || c < 32)
                        printf("\\u%04x", c);
                else
                        putchar(c);
        }
        putchar('"');
}

static void print_frame(const struct afz_book *b, uint64_t f)
{
        if (!(f & AFZ_FRAME_PYTHON)) {
                printf("%llu", (unsigned long long)f);
                return;
        }
        putchar('[');
        print_text(b->texts + AFZ_FRAME_FILE(f) % AFZ_BOOK_TEXT, 256);
        printf(",%u,", AFZ_FRAME_LINE(f));
        print_text(b->texts + AFZ_FRAME_FUNCTION(f) % AFZ_BOOK_TEXT, 256);
        putchar(']');
}

#define NUMBER(name, value) printf("\"" name "\":%llu,", (unsigned long long)(value))

static void print_site(const struct afz_book *b, const struct afz_book_site *s)
{
        putchar('{');
        NUMBER("kind", s->kind);
        NUMBER("live", s->live_bytes);
        NUMBER("live_blocks", s->live_blocks);
        NUMBER("total", s->total_bytes);
        NUMBER("total_blocks", s->total_blocks);
        NUMBER("early", s->early_bytes);
        NUMBER("large", s->large_bytes);
        NUMBER("step", s->step);
        printf("\"frames\":[");
        for (uint32_t i = 0; i < s->frames && s->frame + i < AFZ_BOOK_FRAMES; i++) {
                if (i > 0)
                        putchar(',');
                print_frame(b, b->frame[s->frame + i]);
        }
        printf("]}");
}

static void print_modules(const struct afz_book *b)
{
        uint32_t n = b->modules < AFZ_BOOK_MODULES ? b->modules : AFZ_BOOK_MODULES;
        printf("\"modules\":[");
        for (uint32_t i = 0; i < n; i++) {
                const struct afz_book_module *m = &b->module[i];
                printf("%s{", i > 0 ? "," : "");
                NUMBER("base", m->base);
                NUMBER("end", m->end);
                NUMBER("shift", m->shift);
                NUMBER("build_id_bytes", m->build_id_bytes);
                printf("\"path\":");
                print_text(m->path, sizeof m->path);
                putchar('}');
        }
        printf("],");
}

static void print_book(int index)
{
        const struct afz_book *b = keeper.book[index];
        uint64_t blocks = 0;
        const char *comma = "";
        for (unsigned i = 0; i < AFZ_BOOK_BLOCKS; i++)
                blocks += b->address[i] > 1;
        printf("{\"program\":");
        print_text(keeper.program[index], 64);
        printf(",\"why\":");
        print_text(b->why, sizeof b->why);
        printf(",\"python\":");
        print_text(b->python, sizeof b->python);
        putchar(',');
        NUMBER("pid", b->pid);
        NUMBER("own_pid", b->own_pid);
        NUMBER("state", b->state);
        NUMBER("inside", b->inside);
        NUMBER("samples", b->samples);
        NUMBER("frees", b->frees);
        NUMBER("blocks", blocks);
        NUMBER("dropped_sites", b->dropped_sites);
        NUMBER("dropped_blocks", b->dropped_blocks);
        NUMBER("dropped_frames", b->dropped_frames);
        NUMBER("steps", b->step);
        print_modules(b);
        printf("\"sites\":[");
        for (unsigned i = 0; i < AFZ_BOOK_SITES; i++) {
                if (b->site[i].kind == AFZ_SITE_FREE || b->site[i].total_blocks == 0)
                        continue;
                printf("%s", comma);
                print_site(b, &b->site[i]);
                comma = ",";
        }
        printf("]}");
}

/* ---- running ---- */

static pid_t start(const char *probe, const char *path, char **command)
{
        char preload[4096];
        const char *already = getenv("LD_PRELOAD");
        pid_t pid = fork();
        if (pid != 0)
                return pid;
        snprintf(preload, sizeof preload, "%s %s %s", probe, keeper.behind, already ? already : "");
        setenv(AFZ_BOOK_SOCKET, path, 1);
        setenv("LD_PRELOAD", preload, 1);
        dup2(STDERR_FILENO, STDOUT_FILENO); /* stdout is for the books */
        execvp(command[0], command);
        _exit(127);
}

static int listen_at(const char *path)
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

static int usage(void)
{
        fprintf(stderr, "usage: probe_keeper [-m MEAN_BYTES] [-s SEED] [-b HOW] [-p OTHER.so] "
                        "PROBE.so SOCKET CMD...\n");
        return 2;
}

int main(int argc, char **argv)
{
        int c, status = 0;
        struct timespec began, ended;
        while ((c = getopt(argc, argv, "+m:s:b:p:")) != -1) {
                if (c == 'm')
                        keeper.mean_bytes = strtoull(optarg, NULL, 10);
                else if (c == 's')
                        keeper.seed = strtoull(optarg, NULL, 10);
                else if (c == 'b')
                        keeper.bad = optarg;
                else if (c == 'p')
                        keeper.behind = optarg;
                else
                        return usage();
        }
        if (argc - optind < 3)
                return usage();
        int listener = listen_at(argv[optind + 1]);
        if (listener < 0) {
                fprintf(stderr, "probe_keeper: %s: %s\n", argv[optind + 1], strerror(errno));
                return 1;
        }
        clock_gettime(CLOCK_MONOTONIC, &began);
        pid_t pid = start(argv[optind], argv[optind + 1], argv + optind + 2);
        while (waitpid(pid, &status, WNOHANG) == 0) {
                struct pollfd p = {.fd = listener, .events = POLLIN};
                if (poll(&p, 1, 5) > 0)
                        serve(listener);
        }
        clock_gettime(CLOCK_MONOTONIC, &ended);
        printf("{\"status\":%d,\"ms\":%lld,\"books\":[", status,
               (long long)(ended.tv_sec - began.tv_sec) * 1000 +
                       (ended.tv_nsec - began.tv_nsec) / 1000000);
        for (int i = 0; i < keeper.books; i++) {
                if (i > 0)
                        printf(",\n");
                print_book(i);
        }
        printf("]}\n");
        return 0;
}
