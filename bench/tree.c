/* bench-tree PROCESSES THREADS: an idle tree to look at. Its root is this process; it prints
 * "ready" once all of it stands, and all of it ends when stdin does. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* What each process touches of its own, so that there is something to count. */
#define OWN_BYTES (1024 * 1024)

static void *idle(void *arg)
{
        (void)arg;
        for (;;)
                pause();
        return NULL;
}

static void become_idle(long threads, int ready)
{
        char *own = malloc(OWN_BYTES);
        pthread_attr_t attr;
        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, 64 * 1024);
        if (own)
                memset(own, 1, OWN_BYTES);
        for (long i = 1; i < threads; i++) {
                pthread_t t;
                if (pthread_create(&t, &attr, idle, NULL) != 0)
                        _exit(1);
        }
        if (write(ready, "x", 1) != 1)
                _exit(1);
        idle(NULL);
}

int main(int argc, char **argv)
{
        long processes = argc > 1 ? atol(argv[1]) : 64, threads = argc > 2 ? atol(argv[2]) : 4;
        int ready[2];
        char c;
        if (processes < 1 || threads < 1 || pipe(ready) < 0)
                return 2;
        for (long i = 1; i < processes; i++) {
                pid_t pid = fork();
                if (pid < 0) {
                        perror("bench-tree: fork");
                        return 1;
                }
                if (pid == 0) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        close(STDIN_FILENO);
                        become_idle(threads, ready[1]);
                }
        }
        for (long i = 1; i < processes; i++)
                if (read(ready[0], &c, 1) != 1)
                        return 1;
        for (long i = 1; i < threads; i++) {
                pthread_t t;
                if (pthread_create(&t, NULL, idle, NULL) != 0)
                        return 1;
        }
        puts("ready");
        fflush(stdout);
        while (read(STDIN_FILENO, &c, 1) > 0)
                ;
        return 0;
}
