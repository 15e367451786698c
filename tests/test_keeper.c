/* links: engine */
/* The keeper as a process: it hands out a book, looks when it is told to, answers who asks, and
 * what it saw is in the recording. */
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "flight_file.h"
#include "keeper.h"
#include "keeper_ask.h"
#include "keeper_room.h"
#include "recorder.h"
#include "run_fixture.h"
#include "site_top.h"
#include "wire.h"

#define PATIENCE_NS (UINT64_C(20) * AFZ_NS_PER_S)
#define MEGA        (UINT64_C(1) << 20)

struct bench {
        struct afz_run run;
        struct afz_recorder *recorder;
        struct afz_keeper *keeper;
        char path[108];
};

static void open_bench_with(struct bench *b, bool refuses)
{
        char cmd[] = "cmd", cwd[] = "/", git[] = "";
        struct afz_flight_head head = {.run = "r", .host = "h", .cmd = cmd, .cwd = cwd, .git = git};
        const struct afz_keeper_plan plan = {
                .ram_bytes = MEGA << 10, .budget_bytes = MEGA << 10, .refuses = refuses};
        start(at("d"), &b->run);
        assert_int_equal(afz_recorder_start(&b->run, &head, &b->recorder), 0);
        afz_recorder_go(b->recorder, AFZ_TIER_NONE);
        snprintf(b->path, sizeof b->path, "%s", at("k.probe"));
        assert_int_equal(afz_keeper_start(b->path, &plan, b->recorder, &b->keeper), 0);
}

static void open_bench(struct bench *b)
{
        open_bench_with(b, false);
}

static void close_bench(struct bench *b, struct afz_flight *ret)
{
        char why[256] = "";
        afz_keeper_free(b->keeper);
        afz_recorder_stop(b->recorder, PATIENCE_NS);
        afz_flight_init(ret);
        assert_int_equal(afz_flight_read(b->run.dir_fd, NULL, ret, why), 0);
        afz_recorder_free(b->recorder);
        finish(&b->run, 0);
}

/* Sends a packet; the connection. */
static int say(const struct bench *b, const void *packet, size_t bytes)
{
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        strcpy(to.sun_path, b->path);
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
        assert_int_equal(send(fd, packet, bytes, MSG_NOSIGNAL), bytes);
        return fd;
}

/* As a probe does. *ret_room: -1 where none came. */
static struct afz_book *get_book_and_room(const struct bench *b, int *ret_room)
{
        const struct afz_book_wish wish = {AFZ_BOOK_MAGIC, AFZ_BOOK_VERSION, 1, "train\033.py"};
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(2 * sizeof(int))];
        } beside;
        char byte;
        struct iovec data = {&byte, 1};
        struct msghdr m = {.msg_iov = &data,
                           .msg_iovlen = 1,
                           .msg_control = &beside,
                           .msg_controllen = sizeof beside};
        int fd = say(b, &wish, sizeof wish), memory, got[2] = {-1, -1};
        assert_int_equal(recvmsg(fd, &m, MSG_CMSG_CLOEXEC), 1);
        assert_true(beside.head.cmsg_len == CMSG_LEN(sizeof memory) ||
                    beside.head.cmsg_len == CMSG_LEN(sizeof got));
        memcpy(got, CMSG_DATA(&beside.head), beside.head.cmsg_len - CMSG_LEN(0));
        memory = got[0];
        *ret_room = got[1];
        struct afz_book *book =
                mmap(NULL, AFZ_BOOK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
        assert_true(book != MAP_FAILED);
        close(memory);
        close(fd);
        return book;
}

static struct afz_book *get_book(const struct bench *b)
{
        int room;
        struct afz_book *book = get_book_and_room(b, &room);
        assert_int_equal(room, -1);
        return book;
}

static void write_site(struct afz_book *b, uint64_t live, uint64_t high, uint64_t low)
{
        struct afz_book_site *s = &b->site[5];
        strcpy(b->texts + 4, "/home/me/train.py");
        strcpy(b->texts + 24, "load");
        b->frame[0] = AFZ_FRAME_PYTHON | UINT64_C(33) << 36 | UINT64_C(1) << 18 | 6;
        s->frames = 1;
        s->live_bytes = live;
        s->live_blocks = 1;
        s->total_bytes = 90 * MEGA;
        s->high_bytes = high;
        s->low_bytes = low;
        b->block[3].site_size = UINT64_C(5) << 48 | 1;
        b->block[3].weight_bytes = live;
        b->block[3].born = UINT64_C(2) << 32;
        b->address[3] = 0x5000;
        b->samples = 1;
        b->live_bytes = live;
        b->high_bytes = high;
        s->kind = AFZ_SITE_HEAP;
}

static void look(struct bench *b)
{
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
        const struct timespec ms = {0, 1000000};
        afz_keeper_look_now(b->keeper);
        while (!afz_keeper_looked(b->keeper) && afz_clock_ns(CLOCK_MONOTONIC) < end_ns)
                nanosleep(&ms, NULL);
        assert_true(afz_keeper_looked(b->keeper));
}

/* The most that a metric of the first track of a kind was. */
static int64_t most(const struct afz_flight *flight, enum afz_metric metric)
{
        const struct afz_track *track = NULL;
        const struct afz_column *column = NULL;
        int64_t value = -1;
        for (size_t cursor = 0;
             !column && (track = afz_flight_next(flight, afz_metric_kind(metric), &cursor));)
                column = afz_track_column(track, metric);
        if (!column || !afz_column_most(column, 0, UINT32_MAX, &value))
                fail_msg("%s is not told", afz_metric_info(metric)->name);
        return value;
}

static void test_a_look(void **state)
{
        struct bench b;
        struct afz_flight flight;
        struct afz_keeper_answer answer;
        (void)state;
        open_bench(&b);
        struct afz_book *book = get_book(&b);
        assert_int_equal(afz_keeper_ask(b.path, 20000, &answer), 0);
        assert_int_equal(answer.processes, 1);
        write_site(book, 40 * MEGA, 70 * MEGA, 10 * MEGA);
        look(&b);
        assert_int_equal(book->site[5].high_bytes, 40 * MEGA); /* set anew */
        assert_int_equal(book->site[5].low_bytes, 40 * MEGA);
        book->step = 12;
        book->wait_ns = 5;
        look(&b);
        assert_int_equal(afz_keeper_ask(b.path, 20000, &answer), 0);
        assert_int_equal(answer.rows, 1);
        assert_int_equal(answer.step, 12);
        assert_string_equal(answer.row[0].name, "train.py:33 in load()");
        assert_int_equal(answer.row[0].live_bytes, 40 * MEGA);
        assert_string_equal(answer.words, "the probe is in 1 process");
        close_bench(&b, &flight);

        assert_int_equal(most(&flight, AFZ_SITE_HIGH), 70 * MEGA);
        assert_int_equal(most(&flight, AFZ_SITE_LOW), 40 * MEGA);
        assert_int_equal(most(&flight, AFZ_SITE_AGE_STEPS), 10);
        assert_int_equal(most(&flight, AFZ_INSIDE_HIGH), 70 * MEGA);
        assert_int_equal(most(&flight, AFZ_INSIDE_WAIT), 5);
        const struct afz_column *steps = afz_flight_steps(&flight);
        assert_non_null(steps);
        assert_int_equal(steps->point[0].mean, 0); /* the first step came after this */
        assert_int_equal(steps->point[1].mean, 12);
        assert_true(steps->point[0].t_ms <= steps->point[1].t_ms);
        const struct afz_track *inside = afz_flight_one(&flight, AFZ_KIND_INSIDE);
        assert_null(afz_track_column(inside, AFZ_INSIDE_HEAP_TAKEN)); /* absent is not zero */
        afz_flight_done(&flight);
        munmap(book, AFZ_BOOK_BYTES);
}

/* Who has no steps of its own, as a loader's worker: what it allocates once the job has begun them
 * is not from before the first. */
static void test_a_worker(void **state)
{
        struct bench b;
        struct afz_flight flight;
        int64_t early;
        (void)state;
        open_bench(&b);
        struct afz_book *book = get_book(&b);
        write_site(book, 40 * MEGA, 40 * MEGA, 40 * MEGA);
        book->site[5].early_bytes = 40 * MEGA;
        book->block[3].born = 1000; /* far later than all else here */
        look(&b);
        pid_t pid = fork(); /* the other one has steps */
        if (pid == 0) {
                struct afz_book *other = get_book(&b);
                other->step = 3;
                alarm(60); /* should nobody end it */
                pause();
                _exit(0);
        }
        struct afz_keeper_answer answer = {0};
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
        while (answer.step == 0 && afz_clock_ns(CLOCK_MONOTONIC) < end_ns) {
                look(&b);
                assert_int_equal(afz_keeper_ask(b.path, 20000, &answer), 0);
        }
        assert_int_equal(answer.step, 3);
        look(&b);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        close_bench(&b, &flight);
        assert_int_equal(most(&flight, AFZ_SITE_EARLY), 40 * MEGA); /* as long as nobody knew */
        const struct afz_track *site = NULL;
        for (size_t at = 0; (site = afz_flight_next(&flight, AFZ_KIND_SITE, &at));)
                if (afz_column_last(afz_track_column(site, AFZ_SITE_EARLY), UINT32_MAX, &early))
                        assert_int_equal(early, 0);
        afz_flight_done(&flight);
        munmap(book, AFZ_BOOK_BYTES);
}

/* What a step needs is there between two looks alone: its mark of high water tells of it. */
static void test_a_step_between_looks(void **state)
{
        struct bench b;
        struct afz_flight flight;
        (void)state;
        open_bench(&b);
        struct afz_book *book = get_book(&b);
        write_site(book, 0, 70 * MEGA, 0);
        book->address[3] = 0; /* it is gone */
        look(&b);
        close_bench(&b, &flight);
        assert_int_equal(most(&flight, AFZ_SITE_HIGH), 70 * MEGA);
        assert_int_equal(most(&flight, AFZ_SITE_LIVE), 0);
        afz_flight_done(&flight);
        munmap(book, AFZ_BOOK_BYTES);
}

/* What a framework told goes under its own name; what it did not tell is absent. */
static void test_told(void **state)
{
        struct bench b;
        struct afz_flight flight;
        (void)state;
#define SAME(id, text) assert_string_equal(afz_metric_info(AFZ_INSIDE_##id)->name, text);
        AFZ_TOLD_LIST(SAME)
#undef SAME
        open_bench(&b);
        struct afz_book *book = get_book(&b);
        book->told[AFZ_TOLD_PHASE] = 2 + 1; /* in the book it is one more */
        book->told[AFZ_TOLD_PARAMETERS] = 30 * MEGA + 1;
        book->told[AFZ_TOLD_SAVED_STEP] = 0 + 1;
        book->told[AFZ_TOLD_OOMS] = 4 + 1;
        book->told[AFZ_TOLD_SPLITS] = UINT64_MAX; /* no sense */
        book->refused = 2;
        book->refused_bytes = 50 * MEGA;
        look(&b);
        book->told[AFZ_TOLD_PHASE] = 3 + 1;
        book->told[AFZ_TOLD_OOMS] = 1 + 1;   /* what is counted does not run back */
        book->told[AFZ_TOLD_SAVED_STEP] = 0; /* taken back */
        look(&b);
        close_bench(&b, &flight);
        assert_int_equal(most(&flight, AFZ_INSIDE_PHASE), 3);
        assert_int_equal(most(&flight, AFZ_INSIDE_PARAMETERS), 30 * MEGA);
        assert_int_equal(most(&flight, AFZ_INSIDE_SAVED_STEP), 0);
        assert_int_equal(most(&flight, AFZ_INSIDE_REFUSED), 2);
        assert_int_equal(most(&flight, AFZ_INSIDE_REFUSED_BYTES), 50 * MEGA);
        const struct afz_track *inside = afz_flight_one(&flight, AFZ_KIND_INSIDE);
        assert_non_null(inside); /* though it has no steps, and is small */
        int64_t ooms = 0;
        assert_true(afz_column_last(afz_track_column(inside, AFZ_INSIDE_OOMS), UINT32_MAX, &ooms));
        assert_int_equal(ooms, 4);
        assert_null(afz_track_column(inside, AFZ_INSIDE_SPLITS));
        assert_null(afz_track_column(inside, AFZ_INSIDE_GRADIENTS));
        afz_flight_done(&flight);
        munmap(book, AFZ_BOOK_BYTES);
}

/* ---- the room ---- */

static void test_room(void **state)
{
        struct bench b;
        struct afz_flight flight;
        int fd;
        (void)state;
        open_bench_with(&b, true);
        struct afz_room *ours = afz_keeper_room(b.keeper);
        assert_non_null(ours);
        struct afz_book *book = get_book_and_room(&b, &fd);
        assert_true(fd >= 0);
        const struct afz_room *room = mmap(NULL, AFZ_ROOM_BYTES, PROT_READ, MAP_SHARED, fd, 0);
        assert_true(room != MAP_FAILED);
        assert_true(room->magic == AFZ_ROOM_MAGIC);
        assert_true(room->room_bytes == AFZ_ROOM_ALL); /* before the first look */
        afz_keeper_room_write(ours, 77, 5 * MEGA);
        assert_int_equal(room->room_bytes, 5 * MEGA);
        assert_int_equal(room->looked_ns, 77);
        assert_int_equal(room->looks, 1);
        /* The job has a part of its own behind it, and can take nothing away. */
        const struct afz_promise of_job = {.owner = 7, .bytes = MEGA};
        assert_int_equal(pwrite(fd, &of_job, sizeof of_job, AFZ_ROOM_PROMISES_AT), sizeof of_job);
        assert_int_equal(room->room_bytes, 5 * MEGA);
        assert_true(ftruncate(fd, 0) < 0);
        close(fd);
        close_bench(&b, &flight);
        assert_int_equal(room->room_bytes, 5 * MEGA); /* it is there without us */
        munmap((void *)(uintptr_t)room, AFZ_ROOM_BYTES);
        munmap(book, AFZ_BOOK_BYTES);
        afz_flight_done(&flight);
        afz_keeper_room_write(NULL, 1, 1);
        assert_null(afz_keeper_room(NULL));
}

static void test_room_left(void **state)
{
        enum { DEAF = 1, OWN = 2 }; /* nobody can use less; the machine is short by the job */
        static const struct {
                uint64_t need, available, swap_free; /* in MEGA; 0: not known */
                unsigned flags;
                uint64_t proved;
                enum afz_stage stage;
                uint64_t left;
        } row[] = {
                {500, 8000, 0, 0, 0, AFZ_STAGE_CALM, 440},
                {500, 0, 0, 0, 0, AFZ_STAGE_CALM, 440},
                {930, 8000, 0, 0, 0, AFZ_STAGE_OVER, 10},
                {940, 8000, 0, 0, 0, AFZ_STAGE_OVER, 0},
                {1500, 8000, 0, 0, 0, AFZ_STAGE_OVER, 0},
                {940, 8000, 0, 0, 0, AFZ_STAGE_ASKED, 40}, /* to save with */
                {985, 8000, 0, 0, 0, AFZ_STAGE_TERMINATED, 0},
                /* Who was there and came back may go there again, but not where it is stopped. */
                {940, 8000, 0, 0, 910, AFZ_STAGE_CALM, 0},
                {940, 8000, 0, 0, 960, AFZ_STAGE_CALM, 21},
                {940, 8000, 0, 0, 980, AFZ_STAGE_CALM, 40},
                /* Who cannot use less and lives there has all that it would not be stopped for. */
                {500, 8000, 0, DEAF, 0, AFZ_STAGE_CALM, 440},
                {500, 8000, 0, DEAF, 910, AFZ_STAGE_CALM, 480},
                {960, 8000, 0, DEAF, 960, AFZ_STAGE_CALM, 20},
                {985, 8000, 0, DEAF, 960, AFZ_STAGE_OVER, 0},
                /* A machine that is short by others' doing; and by its own. */
                {500, 100, 0, 0, 0, AFZ_STAGE_CALM, 440},
                {500, 300, 0, OWN, 0, AFZ_STAGE_CALM, 100},
                {500, 300, 30, OWN, 0, AFZ_STAGE_CALM, 130},
                {500, 300, 250, OWN, 0, AFZ_STAGE_CALM, 150}, /* of swap it may have 50 */
                {500, 100, 0, OWN, 0, AFZ_STAGE_CALM, 0},
                {905, 210, 0, 0, 0, AFZ_STAGE_CALM, 10}, /* over act: it is asked, too */
        };
        struct afz_ladder ladder = {.setup.lines = {.act_bytes = 900 * MEGA,
                                                    .stop_bytes = 980 * MEGA,
                                                    .hard_bytes = 1000 * MEGA,
                                                    .low_bytes = 200 * MEGA,
                                                    .slow_bytes = UINT64_MAX}};
        (void)state;
        for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
                struct afz_pulse pulse = {0};
                ladder.setup.refuses = !(row[i].flags & DEAF);
                ladder.pressure.own = (row[i].flags & OWN) != 0;
                ladder.proved_bytes = row[i].proved * MEGA;
                ladder.stage = row[i].stage;
                afz_pulse_set(&pulse, AFZ_PULSE_NEED, row[i].need * MEGA);
                if (row[i].available > 0)
                        afz_pulse_set(&pulse, AFZ_PULSE_AVAILABLE, row[i].available * MEGA);
                if (row[i].swap_free > 0)
                        afz_pulse_set(&pulse, AFZ_PULSE_SWAP_FREE, row[i].swap_free * MEGA);
                if (afz_keeper_room_left(&ladder, &pulse, 50 * MEGA) != row[i].left * MEGA)
                        fail_msg("row %u: not %u", i, (unsigned)row[i].left);
        }
        const struct afz_pulse nothing = {0};
        assert_true(afz_keeper_room_left(&ladder, &nothing, 0) == AFZ_ROOM_ALL);
}

/* Packets that nobody sends get a hang-up, and all others still what they ask for. */
static void test_hostile_packets(void **state)
{
        struct bench b;
        struct afz_flight flight;
        struct afz_keeper_answer answer;
        unsigned char noise[4096];
        static const size_t sizes[] = {1,
                                       8,
                                       sizeof(struct afz_book_wish) - 1,
                                       sizeof(struct afz_book_wish),
                                       sizeof(struct afz_book_wish) + 1,
                                       sizeof noise};
        (void)state;
        memset(noise, 0x5a, sizeof noise);
        open_bench(&b);
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                int fd = say(&b, noise, sizes[i]);
                struct pollfd p = {.fd = fd, .events = POLLIN};
                char byte;
                assert_int_equal(poll(&p, 1, 20000), 1);
                assert_true(recv(fd, &byte, 1, 0) <= 0);
                close(fd);
        }
        assert_int_equal(afz_keeper_ask(b.path, 20000, &answer), 0);
        assert_int_equal(answer.rows, 0);
        assert_int_equal(answer.looked_ns, 0);
        close_bench(&b, &flight);
        afz_flight_done(&flight);
        assert_true(afz_keeper_ask(b.path, 100, &answer) < 0); /* it is over */
}

/* Nobody waits for a keeper that is not there. */
static void test_none(void **state)
{
        (void)state;
        afz_keeper_look_now(NULL);
        assert_true(afz_keeper_looked(NULL));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_look, setup, teardown),
                cmocka_unit_test_setup_teardown(test_hostile_packets, setup, teardown),
                cmocka_unit_test_setup_teardown(test_told, setup, teardown),
                cmocka_unit_test_setup_teardown(test_room, setup, teardown),
                cmocka_unit_test(test_room_left),
                cmocka_unit_test_setup_teardown(test_a_worker, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_step_between_looks, setup, teardown),
                cmocka_unit_test(test_none),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
