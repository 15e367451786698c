/* When the witness looks. */
#include "clock.h"
#include "count_of.h"
#include "witness.h"

static const struct {
        uint64_t piece_ns;      /* over which core time is taken */
        double cores;           /* below which nothing is done; as judge_hang.c has it */
        double busy;            /* from which on it works */
        uint64_t steps;         /* before them it may still be preparing; as hang_steps.c has it */
        uint64_t quiet_ns[2];   /* of standing still, until each look */
        uint64_t turning_ns[3]; /* of work without a step, until each look */
        uint64_t first_bytes;   /* that may be recorded of all looks together */
        uint64_t bytes_per_min; /* and for each minute of the run */
} at = {
        .piece_ns = 2500 * AFZ_NS_PER_MS,
        .cores = 0.02,
        .busy = 0.5,
        .steps = 5,
        /* The first: a checkpoint or a download may pause as long, and costs one look. The second
         * comes just before a hang is called one (60 s), to tell who has not moved since. */
        .quiet_ns = {20 * AFZ_NS_PER_S, 55 * AFZ_NS_PER_S},
        /* What is the same in all of them is the loop. Before it is called one (120 s). */
        .turning_ns = {60 * AFZ_NS_PER_S, 80 * AFZ_NS_PER_S, 100 * AFZ_NS_PER_S},
        .first_bytes = 512 << 10,
        .bytes_per_min = 1 << 10, /* 1.5 MB a day for who pauses all the time */
};

/* A healthy job that evaluates for minutes is looked at each time: half is kept for one that stands
 * still, of which nothing else tells where. */
static bool may_spend(const struct afz_witness_due *due, uint64_t now_ns)
{
        uint64_t minutes = (now_ns - due->start_ns) / (60 * AFZ_NS_PER_S);
        uint64_t most = at.first_bytes + minutes * at.bytes_per_min;
        return due->spent_bytes < (due->quiet_ns != 0 ? most : most / 2);
}

static void begin(struct afz_witness_due *due, uint64_t now_ns, uint64_t cpu_ns)
{
        due->since_ns = now_ns;
        due->cpu_ns = cpu_ns;
        due->stepped = false;
}

static void go_on(struct afz_witness_due *due, uint64_t *stretch_ns, bool goes_on)
{
        if (!goes_on) {
                *stretch_ns = 0;
        } else if (*stretch_ns == 0) {
                *stretch_ns = due->since_ns;
                due->looks = 0;
        }
}

/* The end of a piece of time: did it do anything in it? */
static void close_piece(struct afz_witness_due *due, uint64_t now_ns, uint64_t cpu_ns)
{
        uint64_t used_ns = cpu_ns > due->cpu_ns ? cpu_ns - due->cpu_ns : 0;
        double cores = (double)used_ns / (double)(now_ns - due->since_ns);
        go_on(due, &due->quiet_ns, cores <= at.cores);
        go_on(due, &due->turning_ns, cores >= at.busy && due->step >= at.steps && !due->stepped);
        begin(due, now_ns, cpu_ns);
}

static bool is_time(const struct afz_witness_due *due, uint64_t now_ns)
{
        if (due->quiet_ns != 0)
                return due->looks < AFZ_COUNT_OF(at.quiet_ns) &&
                       now_ns - due->quiet_ns >= at.quiet_ns[due->looks];
        return due->turning_ns != 0 && due->looks < AFZ_COUNT_OF(at.turning_ns) &&
               now_ns - due->turning_ns >= at.turning_ns[due->looks];
}

bool afz_witness_due(struct afz_witness_due *due, uint64_t now_ns, uint64_t cpu_ns, uint64_t step,
                     bool held)
{
        if (due->start_ns == 0) {
                due->start_ns = now_ns;
                begin(due, now_ns, cpu_ns);
        }
        if (step != due->step) {
                due->step = step;
                due->stepped = true;
                due->turning_ns = 0;
        }
        if (held) {
                due->quiet_ns = due->turning_ns = 0;
                begin(due, now_ns, cpu_ns);
        } else if (now_ns - due->since_ns >= at.piece_ns) {
                close_piece(due, now_ns, cpu_ns);
        }
        return is_time(due, now_ns) && may_spend(due, now_ns);
}

void afz_witness_took(struct afz_witness_due *due, size_t bytes)
{
        due->looks++;
        due->spent_bytes += bytes;
}
