#include "trainer.h"

#include <antifreeze/step.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "digits.h"
#include "loader.h"
#include "net.h"
#include "optim.h"
#include "pitfalls.h"
#include "pool.h"
#include "scratch.h"
#include "source.h"

enum {
        HELD_OUT_SAMPLES = 2000, /* one sample is 0.05 %: finer than the noise between seeds */
        HELD_OUT_BATCH = 200,    /* small, so that the turn of an epoch is no peak of its own */
};

/* What happened since the last line. */
struct meter {
        uint64_t since_ns, waited_ns; /* waited: for data */
        uint64_t steps, samples, correct;
        double loss; /* the sum over the steps */
};

struct trainer {
        const struct afz_options *options;
        const volatile sig_atomic_t *stop;
        struct afz_scratch *scratch;
        struct afz_source *source;
        struct afz_loader *loader;
        struct afz_pool *pool;
        struct afz_pitfalls *pitfalls;
        struct afz_net net;
        struct afz_optim optim;

        uint64_t started_ns, steps;
        struct meter meter;
        double last_loss, held_out; /* held_out: a share, below 0 while unknown */
};

static uint64_t now_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* One line on stderr; an interruption is no failure and is told by the last line. Returns rc. */
__attribute__((format(printf, 2, 3))) static int complain(int rc, const char *format, ...)
{
        va_list args;

        if (rc == -EINTR)
                return rc;
        fflush(stdout);
        fputs("afz-trainer: ", stderr);
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fprintf(stderr, ": %s\n", strerror(-rc));
        return rc;
}

static int open_source(struct trainer *t)
{
        const struct afz_options *o = t->options;

        if (o->whole_dataset_bytes)
                return afz_source_new_whole(o->seed, o->samples, t->stop, &t->source);
        if (o->slow_disk_bytes)
                return afz_source_new_slow_disk(o->seed, o->samples, o->slow_disk_bytes, t->scratch,
                                                t->stop, &t->source);
        return afz_source_new_drawn(o->seed, o->samples, &t->source);
}

static int open_data(struct trainer *t)
{
        const struct afz_options *o = t->options;
        int rc = 0;

        if (o->log_everything || o->slow_disk_bytes)
                rc = afz_scratch_new(o->data_dir, &t->scratch);
        if (rc < 0)
                return complain(rc, "data folder %s", o->data_dir ? o->data_dir : "in $TMPDIR");
        rc = open_source(t);
        if (rc < 0)
                return complain(rc, "a data set of %" PRIu64 " samples", o->samples);
        rc = afz_loader_new(&(struct afz_loader_config){.source = t->source,
                                                        .seed = o->seed,
                                                        .batch = o->batch,
                                                        .workers = o->workers},
                            &t->loader);
        if (rc < 0)
                return complain(rc, "%" PRIu64 " loader workers", o->workers);
        return 0;
}

static int open_model(struct trainer *t)
{
        const struct afz_options *o = t->options;
        int rc = afz_net_init(&t->net, o->seed);

        if (rc == 0 && o->leaky_layers)
                rc = afz_net_add_leaky_layers(&t->net, o->leaky_layers, o->seed);
        if (rc == 0)
                rc = afz_optim_init(&t->optim, (enum afz_optim_kind)o->optimizer, (float)o->rate,
                                    AFZ_NET_PARAMS);
        if (rc < 0)
                return complain(rc, "the network");
        return 0;
}

/* The loader first: its workers are forked while there is one thread. */
static int trainer_open(struct trainer *t)
{
        int rc = open_data(t);

        if (rc == 0)
                rc = open_model(t);
        if (rc < 0)
                return rc;
        rc = afz_pool_new(t->options->threads, &t->pool);
        if (rc < 0)
                return complain(rc, "%" PRIu64 " threads", t->options->threads);
        rc = afz_pitfalls_new(t->options, t->scratch, &t->pitfalls);
        if (rc < 0)
                return complain(rc, "the pitfalls");
        return 0;
}

static void trainer_close(struct trainer *t)
{
        afz_pitfalls_free(t->pitfalls);
        afz_pool_free(t->pool);
        afz_optim_done(&t->optim);
        afz_net_done(&t->net);
        afz_loader_free(t->loader);
        afz_source_free(t->source);
        afz_scratch_free(t->scratch);
}

static int complain_of_worker(const struct trainer *t, int rc)
{
        int status;
        const pid_t pid = afz_loader_casualty(t->loader, &status);

        if (WIFSIGNALED(status))
                return complain(rc, "loader worker %ld was killed by signal %d", (long)pid,
                                WTERMSIG(status));
        return complain(rc, "loader worker %ld has exited with status %d", (long)pid,
                        WEXITSTATUS(status));
}

static int fetch_batch(struct trainer *t, struct afz_pass *pass)
{
        const uint64_t from_ns = now_ns();
        int rc;

        do
                rc = afz_loader_next(t->loader, pass->input, pass->labels);
        while (rc == -EINTR && !*t->stop);
        t->meter.waited_ns += now_ns() - from_ns;
        if (rc == -ECHILD)
                return complain_of_worker(t, rc);
        if (rc < 0)
                return complain(rc, "reading samples");
        return 0;
}

static int train_on(struct trainer *t, struct afz_pass *pass)
{
        const char *pitfall;
        struct afz_score score;
        int rc = fetch_batch(t, pass);

        if (rc < 0)
                return rc;
        afz_net_forward(&t->net, pass, t->pool);
        score = afz_net_score(pass);
        afz_net_backward(&t->net, pass, t->pool);
        afz_optim_step(&t->optim, t->net.params, t->net.grads, t->pool);

        t->steps++;
        t->last_loss = score.loss;
        t->meter.steps++;
        t->meter.samples += pass->batch;
        t->meter.correct += score.correct;
        t->meter.loss += score.loss;

        rc = afz_pitfalls_step(t->pitfalls, t->steps, pass, &pitfall);
        if (rc < 0)
                return complain(rc, "--%s, step %" PRIu64, pitfall, t->steps);
        return 0;
}

static int train_step(struct trainer *t)
{
        struct afz_pass pass;

        if (antifreeze_step) /* so that Antifreeze knows what belongs to a step */
                antifreeze_step();
        int rc = afz_pass_init(&pass, t->options->batch);
        if (rc < 0)
                return complain(rc, "a batch of %" PRIu64 " samples", t->options->batch);
        rc = train_on(t, &pass);
        afz_pass_done(&pass);
        return rc;
}

static int evaluate(struct trainer *t)
{
        const uint64_t from_ns = now_ns();
        struct afz_pass pass;
        size_t correct = 0;
        int rc = afz_pass_init(&pass, HELD_OUT_BATCH);

        if (rc < 0)
                return complain(rc, "the held-out set");
        for (uint64_t first = 0; first < HELD_OUT_SAMPLES; first += HELD_OUT_BATCH) {
                for (size_t i = 0; i < HELD_OUT_BATCH; i++) {
                        afz_digit_draw(t->options->seed, AFZ_DIGITS_HELD_OUT, first + i,
                                       &pass.input[i * AFZ_DIGIT_PIXELS]);
                        pass.labels[i] = afz_digit_label(first + i);
                }
                afz_net_forward(&t->net, &pass, t->pool);
                correct += afz_net_score(&pass).correct;
        }
        afz_pass_done(&pass);
        t->held_out = (double)correct / HELD_OUT_SAMPLES;
        t->meter.since_ns += now_ns() - from_ns; /* it is no time of training */
        return 0;
}

static double seconds(uint64_t ns)
{
        return (double)ns / 1e9;
}

static void print_meter(struct trainer *t)
{
        const struct meter *m = &t->meter;
        const uint64_t now = now_ns(), spent_ns = now > m->since_ns ? now - m->since_ns : 1;

        if (!t->options->quiet)
                printf("step %6" PRIu64
                       "  loss %7.4f  accuracy %5.1f %%  %7.0f samples/s  data %2.0f %%\n",
                       t->steps, m->loss / (double)m->steps,
                       100 * (double)m->correct / (double)m->samples,
                       (double)m->samples / seconds(spent_ns),
                       100 * (double)m->waited_ns / (double)spent_ns);
        t->meter = (struct meter){.since_ns = now};
}

static int finish_epoch(struct trainer *t, uint64_t epoch)
{
        const int rc = evaluate(t);

        if (rc == 0 && !t->options->quiet)
                printf("epoch %5" PRIu64 "  held-out accuracy %.1f %%\n", epoch, 100 * t->held_out);
        return rc;
}

static bool is_last_step(const struct trainer *t)
{
        return *t->stop || (t->options->steps && t->steps >= t->options->steps);
}

static int train(struct trainer *t)
{
        const uint64_t steps_per_epoch = afz_loader_steps_per_epoch(t->loader);

        t->meter = (struct meter){.since_ns = now_ns()};
        for (uint64_t epoch = 1; epoch <= t->options->epochs && !is_last_step(t); epoch++) {
                for (uint64_t step = 0; step < steps_per_epoch && !is_last_step(t); step++) {
                        const int rc = train_step(t);

                        if (rc < 0)
                                return rc;
                        if (t->steps % t->options->log_every == 0)
                                print_meter(t);
                }
                if (*t->stop)
                        break;

                const int rc = finish_epoch(t, epoch);

                if (rc < 0)
                        return rc;
        }
        return 0;
}

static void print_start(const struct trainer *t)
{
        const struct afz_options *o = t->options;

        if (o->quiet)
                return;
        printf("784-1024-10 perceptron, %d parameters, %s %g, batch %" PRIu64 ", %" PRIu64
               " samples, seed %" PRIu64 "\n",
               AFZ_NET_PARAMS, afz_optim_name(t->optim.kind), (double)t->optim.rate, o->batch,
               o->samples, o->seed);
        if (t->scratch)
                printf("data folder %s\n", afz_scratch_path(t->scratch));
}

static void print_end(const struct trainer *t)
{
        const double spent = seconds(now_ns() - t->started_ns);

        if (*t->stop)
                printf("stopped by %s after %" PRIu64 " steps",
                       *t->stop == SIGINT ? "SIGINT" : "SIGTERM", t->steps);
        else
                printf("done: %" PRIu64 " steps", t->steps);
        if (t->steps)
                printf(", loss %.4f", t->last_loss);
        if (t->held_out >= 0)
                printf(", held-out accuracy %.1f %%", 100 * t->held_out);
        printf(", %.1f s\n", spent);
}

int afz_trainer_run(const struct afz_options *options, const volatile sig_atomic_t *stop)
{
        struct trainer t = {
                .options = options, .stop = stop, .started_ns = now_ns(), .held_out = -1};
        int rc = trainer_open(&t);

        if (rc == 0) {
                print_start(&t);
                rc = train(&t);
        }
        if (rc == 0 || rc == -EINTR)
                print_end(&t);
        trainer_close(&t);
        if (*stop)
                return 128 + (int)*stop;
        return rc == 0 ? 0 : 1;
}
