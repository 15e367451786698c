/* A run without a job, for tests of those who only read runs. Prints its ID.
 *
 *   fake_run end CODE [FOLDER]   a run that ended
 *   fake_run lose [FOLDER]       a run whose guard was killed
 *   fake_run live [FOLDER]       a run that goes on until stdin ends, and answers `set`: swap is
 *                                refused
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "run.h"

static int make(void *ctx, uint64_t promised_bytes)
{
        void **args = ctx;
        struct afz_run_page first = {
                .cmd = "/home/me/bin/python train.py --token hunter2",
                .tier = AFZ_TIER_CGROUP2,
                .policy = AFZ_POLICY_PROTECT,
                .budget_bytes = UINT64_C(4) << 30,
                .swap_bytes = UINT64_C(1) << 30,
                .peak_bytes = UINT64_C(3) << 30,
                .root_pid = (int32_t)getpid(),
        };
        (void)promised_bytes;
        return afz_run_new(args[0], &first, args[1], args[2]);
}

static int serve(const struct afz_run *run)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        memcpy(address.sun_path, run->socket, sizeof address.sun_path);
        if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 4) < 0)
                return 1;
        for (;;) {
                struct pollfd fds[] = {{.fd = 0, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
                char line[256];
                if (poll(fds, 2, -1) < 0 || fds[0].revents)
                        return 0;
                int client = accept(fd, NULL, NULL);
                ssize_t n = recv(client, line, sizeof line - 1, 0);
                line[n > 0 ? n : 0] = '\0';
                run->page->budget_bytes = strtoull(line + strcspn(line, "0123456789"), NULL, 10);
                const char *answer = strstr(line, "budget") ? "ok" : "error not now";
                if (send(client, answer, strlen(answer), MSG_NOSIGNAL) < 0)
                        return 1;
                close(client);
        }
}

int main(int argc, char **argv)
{
        char why[AFZ_RUN_WHY_CAP] = "";
        struct afz_run run;
        struct afz_outcome outcome = {.end = {AFZ_END_RUNNING, -1}};
        bool ends = argc > 2 && strcmp(argv[1], "end") == 0;
        int folder = ends ? 3 : 2;
        void *args[] = {argc > folder ? argv[folder] : NULL, &run, why};

        (void)afz_run_collect(NULL, NULL, NULL);
        if (argc < 2 || afz_run_ledger("", make, args, NULL) < 0) {
                fprintf(stderr, "fake_run: %s\n", why);
                return 1;
        }
        if (afz_run_write(&run, &outcome) < 0)
                fprintf(stderr, "fake_run: not recorded: %s\n", why);
        printf("%s\n", run.page->id);
        fflush(stdout);
        if (strcmp(argv[1], "lose") == 0)
                return 0;
        if (strcmp(argv[1], "live") == 0 && serve(&run) != 0)
                return 1;
        outcome = (struct afz_outcome){.end = {AFZ_END_EXIT, ends ? atoi(argv[2]) : 0},
                                       .verdicts = 1};
        outcome.verdict[0] = (struct afz_verdict){.id = "exception",
                                                  .level = AFZ_LEVEL_WARN,
                                                  .confidence = 0.6,
                                                  .summary = "it ended by itself",
                                                  .fix = "look at its last lines",
                                                  .evidence = {"as it said"}};
        (void)afz_run_write(&run, &outcome);
        afz_run_done(&run);
        return 0;
}
