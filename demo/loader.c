#include "loader.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "digits.h"
#include "rng.h"

enum {
        ROOM = 2,             /* batches a worker may be ahead: one in use and one in the making */
        CHECK_NS = 200000000, /* how often a wait looks whether the workers live: soon for a person,
                                 rare for a CPU */
        STREAM_ORDER = 200,   /* of random numbers; apart from digits and weights */
};

/* In shared memory. Between `full` and `empty` the batch is the caller's, else the worker's. */
struct slot {
        sem_t empty, full;
        int rc;
};

struct worker {
        pid_t pid; /* 0 once it is reaped */
};

struct afz_loader {
        struct afz_loader_config config;
        uint64_t next_batch;
        pid_t casualty;
        int casualty_status;

        void *shared; /* slots, then pixels, then labels, for each of workers x ROOM batches */
        size_t shared_bytes;
        struct slot *slots;
        float *pixels;
        uint8_t *labels;
        size_t forked; /* workers that were made */
        struct worker worker[];
};

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
        while (b) {
                const uint64_t rest = a % b;

                a = b;
                b = rest;
        }
        return a;
}

/* An affine map by a factor without common divisor is a permutation that needs no memory. */
uint64_t afz_loader_shuffle(uint64_t seed, uint64_t epoch, uint64_t samples, uint64_t place)
{
        struct afz_rng rng = afz_rng_seeded(seed, STREAM_ORDER, epoch);
        uint64_t factor = afz_rng_next(&rng) % samples;
        const uint64_t shift = afz_rng_next(&rng) % samples;

        while (common_divisor(factor, samples) != 1)
                factor = (factor + 1) % samples;
        return (factor * place + shift) % samples;
}

uint64_t afz_loader_steps_per_epoch(const struct afz_loader *loader)
{
        return afz_source_samples(loader->config.source) / loader->config.batch;
}

static int read_batch(struct afz_loader *loader, uint64_t number, float *pixels, uint8_t *labels)
{
        const struct afz_loader_config *config = &loader->config;
        const uint64_t steps = afz_loader_steps_per_epoch(loader);
        const uint64_t epoch = number / steps, first = number % steps * config->batch;

        for (size_t i = 0; i < config->batch; i++) {
                const uint64_t sample = afz_loader_shuffle(
                        config->seed, epoch, afz_source_samples(config->source), first + i);
                const int rc = afz_source_read(config->source, sample,
                                               &pixels[i * AFZ_DIGIT_PIXELS], &labels[i]);

                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* Batch k is made by worker k % N, in the k / N % ROOM th place of its own. */
static size_t slot_of(const struct afz_loader *loader, uint64_t number)
{
        const size_t workers = loader->config.workers;

        return (size_t)(number % workers) * ROOM + (size_t)(number / workers % ROOM);
}

static float *slot_pixels(const struct afz_loader *loader, size_t slot)
{
        return &loader->pixels[slot * loader->config.batch * AFZ_DIGIT_PIXELS];
}

static uint8_t *slot_labels(const struct afz_loader *loader, size_t slot)
{
        return &loader->labels[slot * loader->config.batch];
}

static void worker_settle(size_t index, pid_t parent)
{
        char name[32]; /* the kernel takes the first 15 characters */

        snprintf(name, sizeof(name), "afz-loader/%u", (unsigned)index);
        prctl(PR_SET_NAME, name);
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) /* it died before it could be our fate */
                _exit(1);
}

static _Noreturn void worker_main(struct afz_loader *loader, size_t index, pid_t parent)
{
        worker_settle(index, parent);
        for (uint64_t number = index;; number += loader->config.workers) {
                const size_t at = slot_of(loader, number);
                struct slot *slot = &loader->slots[at];

                while (sem_wait(&slot->empty) < 0)
                        ;
                do
                        slot->rc = read_batch(loader, number, slot_pixels(loader, at),
                                              slot_labels(loader, at));
                while (slot->rc == -EINTR);
                sem_post(&slot->full);
        }
}

static int shared_make(struct afz_loader *loader)
{
        const size_t slots = loader->config.workers * ROOM;
        const size_t sample_bytes = AFZ_DIGIT_PIXELS * sizeof(float) + 1;
        size_t bytes;
        void *shared;

        if (__builtin_mul_overflow(slots * sample_bytes, loader->config.batch, &bytes) ||
            __builtin_add_overflow(bytes, slots * sizeof(struct slot), &bytes))
                return -ENOMEM;
        shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
                return -errno;

        loader->shared = shared;
        loader->shared_bytes = bytes;
        loader->slots = shared;
        loader->pixels = (float *)(void *)(loader->slots + slots);
        loader->labels =
                (uint8_t *)(loader->pixels + slots * loader->config.batch * AFZ_DIGIT_PIXELS);
        for (size_t i = 0; i < slots; i++) {
                sem_init(&loader->slots[i].empty, 1, 1);
                sem_init(&loader->slots[i].full, 1, 0);
        }
        return 0;
}

static int workers_start(struct afz_loader *loader)
{
        const pid_t parent = getpid();

        for (size_t i = 0; i < loader->config.workers; i++) {
                const pid_t pid = fork();

                if (pid < 0)
                        return -errno;
                if (pid == 0)
                        worker_main(loader, i, parent);
                loader->worker[i].pid = pid;
                loader->forked = i + 1;
        }
        return 0;
}

int afz_loader_new(const struct afz_loader_config *config, struct afz_loader **ret)
{
        struct afz_loader *loader =
                calloc(1, sizeof(*loader) + config->workers * sizeof(loader->worker[0]));
        int rc = 0;

        if (!loader)
                return -ENOMEM;
        loader->config = *config;
        if (config->workers > 0)
                rc = shared_make(loader);
        if (rc == 0)
                rc = workers_start(loader);
        if (rc < 0) {
                afz_loader_free(loader);
                return rc;
        }
        *ret = loader;
        return 0;
}

struct afz_loader *afz_loader_free(struct afz_loader *loader)
{
        if (!loader)
                return NULL;
        for (size_t i = 0; i < loader->forked; i++)
                if (loader->worker[i].pid)
                        kill(loader->worker[i].pid, SIGKILL);
        for (size_t i = 0; i < loader->forked; i++)
                while (loader->worker[i].pid && waitpid(loader->worker[i].pid, NULL, 0) < 0 &&
                       errno == EINTR)
                        ;
        if (loader->shared)
                munmap(loader->shared, loader->shared_bytes);
        free(loader);
        return NULL;
}

static bool worker_has_died(struct afz_loader *loader)
{
        for (size_t i = 0; i < loader->forked; i++) {
                struct worker *worker = &loader->worker[i];
                int status;

                if (!worker->pid || waitpid(worker->pid, &status, WNOHANG) != worker->pid)
                        continue;
                loader->casualty = worker->pid;
                loader->casualty_status = status;
                worker->pid = 0;
        }
        return loader->casualty != 0;
}

static int wait_for_batch(struct afz_loader *loader, struct slot *slot)
{
        for (;;) {
                struct timespec until;

                clock_gettime(CLOCK_MONOTONIC, &until);
                until.tv_nsec += CHECK_NS;
                if (until.tv_nsec >= 1000000000) {
                        until.tv_nsec -= 1000000000;
                        until.tv_sec++;
                }
                if (sem_clockwait(&slot->full, CLOCK_MONOTONIC, &until) == 0)
                        return 0;
                if (errno != ETIMEDOUT)
                        return -errno;
                if (worker_has_died(loader))
                        return -ECHILD;
        }
}

int afz_loader_next(struct afz_loader *loader, float *pixels, uint8_t *labels)
{
        const size_t batch = loader->config.batch;
        int rc;

        if (loader->config.workers == 0) {
                rc = read_batch(loader, loader->next_batch, pixels, labels);
        } else {
                const size_t at = slot_of(loader, loader->next_batch);
                struct slot *slot = &loader->slots[at];

                rc = wait_for_batch(loader, slot);
                if (rc < 0)
                        return rc;
                rc = slot->rc;
                memcpy(pixels, slot_pixels(loader, at), batch * AFZ_DIGIT_PIXELS * sizeof(*pixels));
                memcpy(labels, slot_labels(loader, at), batch);
                sem_post(&slot->empty);
        }
        if (rc == 0)
                loader->next_batch++;
        return rc;
}

pid_t afz_loader_casualty(const struct afz_loader *loader, int *ret_status)
{
        *ret_status = loader->casualty_status;
        return loader->casualty;
}
