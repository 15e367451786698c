/* A guard's control socket and nothing else, for tests of its clients: control_server PATH. Asks
 * for a checkpoint as soon as somebody can make one, and prints what comes of it, a line each. Ends
 * when its standard input does. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint.h"
#include "clock.h"
#include "control.h"

static int set(void *ctx, int which, uint64_t bytes, char *ret_text, size_t cap)
{
        (void)ctx;
        snprintf(ret_text, cap, "%s %llu", which == AFZ_CONTROL_SET_BUDGET ? "budget" : "swap",
                 (unsigned long long)bytes);
        return 0;
}

static int status(void *ctx, char *ret_text, size_t cap)
{
        (void)ctx;
        snprintf(ret_text, cap, "{\"run\":\"brave-otter\",\"need_bytes\":4096}");
        return 0;
}

static bool is_job(void *ctx, pid_t pid)
{
        (void)ctx;
        (void)pid;
        return false;
}

static void turn(struct afz_control *control, struct afz_checkpoint *checkpoint, enum afz_ack *was)
{
        static const char *const names[] = {"none", "asked", "saving", "saved", "cannot"};
        uint64_t now_ns = afz_clock_ns(CLOCK_MONOTONIC);
        afz_control_turn(control, now_ns);
        if (*was == AFZ_ACK_NONE && afz_checkpoint_can(checkpoint))
                (void)afz_checkpoint_ask(checkpoint, now_ns);
        enum afz_ack ack = afz_checkpoint_turn(checkpoint, now_ns);
        if (ack == *was)
                return;
        *was = ack;
        printf("%s: %s\n", names[ack], afz_checkpoint_words(checkpoint));
        if (ack == AFZ_ACK_SAVED)
                afz_control_tell(control, "stop budget it needs more than it may use");
}

int main(int argc, char **argv)
{
        struct afz_control *control;
        struct afz_checkpoint checkpoint;
        enum afz_ack was = AFZ_ACK_NONE;
        const struct afz_control_calls calls = {.set = set, .status = status, .is_job = is_job};
        if (argc != 2)
                return 2;
        int r = afz_control_new(argv[1], "brave-otter", &calls, &control);
        if (r < 0) {
                fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
                return 1;
        }
        (void)afz_checkpoint_init(&checkpoint, &(struct afz_checkpoint_setup){
                                                       .control = control,
                                                       .wait_ns = 20 * AFZ_NS_PER_S,
                                               });
        setvbuf(stdout, NULL, _IOLBF, 0);
        puts("listening");
        for (;;) {
                struct pollfd fds[1 + AFZ_CONTROL_POLLS] = {{.fd = STDIN_FILENO, .events = POLLIN}};
                size_t n = 1 + afz_control_poll(control, fds + 1, AFZ_CONTROL_POLLS);
                if (poll(fds, n, 50) < 0 && errno != EINTR)
                        break;
                if (fds[0].revents)
                        break;
                turn(control, &checkpoint, &was);
        }
        afz_checkpoint_done(&checkpoint);
        afz_control_free(control);
        return 0;
}
