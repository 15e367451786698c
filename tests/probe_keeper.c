/* A small keeper for tests: runs a command with the probe before it, hands out books, and prints
 * what is in them as JSON when the command has ended.
 *
 * usage: probe_keeper [-m MEAN_BYTES] [-s SEED] [-b HOW] [-p OTHER.so] [-r]
 *                     [-l LINE_BYTES] [-L good|blind|unsealed|short|old] PROBE.so SOCKET CMD...
 *
 * Its exit status is 0; how CMD ended is in "status". -b: a keeper that does not do as it should:
 * hang, refuse, short, unsealed; late, it answers nobody until the first has given up waiting.
 * -l: what all processes together may have touched, as the guard tells it (struct afz_room); -L:
 * how well it does: blind, it looks once and never again; old, the page is another version's. -p: a
 * library that is preloaded behind the probe. -r: for more processes than it has room for; all but
 * the first are checked and let go when they end ("ended", "faults"). */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe_hand.h"

enum { BOOKS = 512, LATE_NS = 1500000000 };

static struct {
        struct afz_book *book[BOOKS];
        char program[BOOKS][64];
        uint64_t mean_bytes, seed;
        const char *bad, *behind;
        int recycles;
        unsigned ended, opened, faults; /* of -r: books that were let go */
        uint64_t line_bytes;            /* -l; 0: nothing is refused */
        const char *looks;              /* -L */
        struct afz_room *room;
        int room_fd;
} keeper = {.mean_bytes = 1 << 20, .bad = "", .behind = "", .looks = "good", .room_fd = -1};

static int make_book(uint32_t pid, const struct afz_book_wish *wish)
{
        int fd = -1, place = 0;
        while (place < BOOKS && keeper.book[place])
                place++;
        struct afz_book *b =
                place == BOOKS ? NULL : hand_make(pid, keeper.mean_bytes, keeper.seed, &fd);
        if (!b)
                return -1;
        if (strcmp(keeper.bad, "short") == 0)
                (void)!ftruncate(fd, 4096);
        if (strcmp(keeper.bad, "unsealed") != 0)
                hand_seal(fd);
        if (keeper.bad[0] == '\0' || strcmp(keeper.bad, "late") == 0) {
                memcpy(keeper.program[place], wish->program, 63);
                keeper.book[place] = b;
        }
        return fd;
}

static uint64_t boottime_ns(void)
{
        struct timespec t;
        clock_gettime(CLOCK_BOOTTIME, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Somebody waits; whether he may be served. */
static int is_time(void)
{
        static uint64_t first_ns;
        if (strcmp(keeper.bad, "late") != 0)
                return 1;
        if (first_ns == 0)
                first_ns = boottime_ns();
        if (boottime_ns() >= first_ns + LATE_NS)
                return 1;
        (void)usleep(5000);
        return 0;
}

static void serve(int listener)
{
        struct afz_book_wish wish;
        uint32_t pid;
        if (!is_time())
                return;
        if (strcmp(keeper.bad, "hang") == 0) {
                (void)accept4(listener, NULL, NULL, SOCK_CLOEXEC); /* and never answer */
                return;
        }
        int fd = hand_accept(listener, &pid, &wish), book = -1;
        if (fd >= 0 && strcmp(keeper.bad, "refuse") != 0)
                book = make_book(pid, &wish);
        if (book >= 0) {
                hand_send(fd, book, keeper.room_fd);
                close(book);
        }
        if (fd >= 0)
                close(fd);
}

/* ---- looking on ---- */

/* With -r: resets the marks, and lets go of books whose process has ended, after a look whether
 * they are whole. */
static void look(void)
{
        for (int i = 0; keeper.recycles && i < BOOKS; i++) {
                struct afz_book *b = keeper.book[i];
                if (!b)
                        continue;
                hand_reset_marks(b);
                if (i == 0 || kill((pid_t)b->pid, 0) == 0 || errno != ESRCH)
                        continue;
                const char *fault = b->state == AFZ_BOOK_NEW ? NULL : hand_fault(b);
                keeper.ended++;
                keeper.opened += b->state != AFZ_BOOK_NEW;
                if (fault) {
                        keeper.faults++;
                        fprintf(stderr, "probe_keeper: process %u: %s\n", b->pid, fault);
                }
                (void)munmap(b, AFZ_BOOK_BYTES);
                keeper.book[i] = NULL;
        }
}

/* ---- the room ---- */

/* What is there of a process, without files. */
static uint64_t touched_by(uint32_t pid)
{
        char path[64];
        unsigned long long size, all = 0, files = 0;
        snprintf(path, sizeof path, "/proc/%u/statm", pid);
        FILE *f = fopen(path, "re");
        if (f && fscanf(f, "%llu %llu %llu", &size, &all, &files) != 3)
                all = files = 0;
        if (f)
                fclose(f);
        return (all - files) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* As the guard does. */
static void look_at_room(void)
{
        uint64_t began = boottime_ns(), touched = 0;
        if (!keeper.room || (strcmp(keeper.looks, "blind") == 0 && keeper.room->looks > 0))
                return;
        for (int i = 0; i < BOOKS; i++)
                if (keeper.book[i])
                        touched += touched_by(keeper.book[i]->pid);
        atomic_store(&keeper.room->room_bytes,
                     touched < keeper.line_bytes ? keeper.line_bytes - touched : 0);
        atomic_store(&keeper.room->looked_ns, began);
        atomic_fetch_add(&keeper.room->looks, 1);
}

static void open_room(void)
{
        size_t size = strcmp(keeper.looks, "short") == 0 ? 512 : AFZ_ROOM_FILE_BYTES;
        keeper.room_fd = memfd_create("room", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (keeper.room_fd < 0 || ftruncate(keeper.room_fd, (off_t)size) < 0)
                return;
        void *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, keeper.room_fd, 0);
        if (room == MAP_FAILED)
                return;
        keeper.room = room;
        keeper.room->magic = AFZ_ROOM_MAGIC + (strcmp(keeper.looks, "old") == 0);
        if (strcmp(keeper.looks, "unsealed") != 0)
                hand_seal(keeper.room_fd);
        look_at_room();
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
        NUMBER("high", s->high_bytes);
        NUMBER("low", s->low_bytes);
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

static void print_told(const struct afz_book *b)
{
#define NAME(id, text) [AFZ_TOLD_##id] = text,
        static const char *const names[AFZ_TOLD_COUNT] = {AFZ_TOLD_LIST(NAME)};
#undef NAME
        const char *comma = "";
        printf("\"told\":{");
        for (int i = 0; i < AFZ_TOLD_COUNT; i++) {
                if (b->told[i] == 0)
                        continue;
                printf("%s\"%s\":%llu", comma, names[i], (unsigned long long)b->told[i] - 1);
                comma = ",";
        }
        printf("},");
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
        NUMBER("wait_ns", b->wait_ns);
        NUMBER("live", b->live_bytes);
        NUMBER("high", b->high_bytes);
        NUMBER("heap_taken", b->heap_taken_bytes);
        NUMBER("heap_used", b->heap_used_bytes);
        NUMBER("heap_ns", b->heap_ns);
        NUMBER("opened_ns", b->opened_ns);
        NUMBER("used_sites", b->sites);
        NUMBER("refused", b->refused);
        NUMBER("refused_bytes", b->refused_bytes);
        print_told(b);
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

static int usage(void)
{
        fprintf(stderr, "usage: probe_keeper [-m MEAN_BYTES] [-s SEED] [-b HOW] [-p OTHER.so] [-r] "
                        "[-l LINE_BYTES] [-L HOW] PROBE.so SOCKET CMD...\n");
        return 2;
}

int main(int argc, char **argv)
{
        int c, status = 0;
        unsigned turn = 0;
        struct timespec began, ended;
        while ((c = getopt(argc, argv, "+m:s:b:p:l:L:r")) != -1) {
                if (c == 'm')
                        keeper.mean_bytes = strtoull(optarg, NULL, 10);
                else if (c == 's')
                        keeper.seed = strtoull(optarg, NULL, 10);
                else if (c == 'b')
                        keeper.bad = optarg;
                else if (c == 'p')
                        keeper.behind = optarg;
                else if (c == 'l')
                        keeper.line_bytes = strtoull(optarg, NULL, 10);
                else if (c == 'L')
                        keeper.looks = optarg;
                else if (c == 'r')
                        keeper.recycles = 1;
                else
                        return usage();
        }
        if (argc - optind < 3)
                return usage();
        int listener = hand_listen(argv[optind + 1]);
        if (listener < 0) {
                fprintf(stderr, "probe_keeper: %s: %s\n", argv[optind + 1], strerror(errno));
                return 1;
        }
        if (keeper.line_bytes > 0)
                open_room();
        clock_gettime(CLOCK_MONOTONIC, &began);
        pid_t pid = start(argv[optind], argv[optind + 1], argv + optind + 2);
        while (waitpid(pid, &status, WNOHANG) == 0) {
                struct pollfd p = {.fd = listener, .events = POLLIN};
                if (poll(&p, 1, 5) > 0)
                        serve(listener);
                look_at_room();
                if (turn++ % 16 == 0)
                        look();
        }
        clock_gettime(CLOCK_MONOTONIC, &ended);
        printf("{\"status\":%d,\"ended\":%u,\"opened\":%u,\"faults\":%u,\"ms\":%lld,\"books\":[",
               status, keeper.ended, keeper.opened, keeper.faults,
               (long long)(ended.tv_sec - began.tv_sec) * 1000 +
                       (ended.tv_nsec - began.tv_nsec) / 1000000);
        const char *comma = "";
        for (int i = 0; i < BOOKS; i++) {
                if (!keeper.book[i])
                        continue;
                printf("%s", comma);
                print_book(i);
                comma = ",\n";
        }
        printf("]}\n");
        return 0;
}
