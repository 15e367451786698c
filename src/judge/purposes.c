#include "purposes.h"

#include "inside.h"
#include "judge_words.h"
#include "site_top.h"
#include "site_use.h"
#include "step_clock.h"
#include "stretch.h"

static const struct {
        const char *name, *what;
} words[AFZ_PURPOSES] = {
        [AFZ_FOR_PARAMETERS] = {"parameters", "the model's weights"},
        [AFZ_FOR_GRADIENTS] = {"gradients", "one for each weight that is trained"},
        [AFZ_FOR_OPTIMIZER] = {"optimizer state",
                               "what the optimizer keeps for each weight: Adam two "
                               "numbers, SGD with momentum one"},
        [AFZ_FOR_BUFFERS] = {"buffers", "what the model has besides weights, as running means"},
        [AFZ_FOR_ACTIVATIONS] = {"activations",
                                 "what the forward pass keeps for the backward pass; "
                                 "grows with the batch"},
        [AFZ_FOR_BATCH] = {"batch", "the samples of one step"},
        [AFZ_FOR_AHEAD] = {"fetched ahead",
                           "batches that loader workers hold ready, by an estimate"},
        [AFZ_FOR_SHUFFLE] = {"shuffle and cache", "buffers of tf.data, by an estimate"},
        [AFZ_FOR_DATASET] = {"dataset", "loaded before the first step, and kept"},
        [AFZ_FOR_CODE] = {"program", "Python and the libraries that it imported"},
        [AFZ_FOR_CONTEXT] = {"CUDA context", "what CUDA itself takes, whatever the program does"},
        [AFZ_FOR_CACHE] = {"allocator cache", "given back by the program, kept for the next step"},
        [AFZ_FOR_UNEXPLAINED] = {"unexplained", "nobody told what it is for"},
};

const char *afz_purpose_name(enum afz_purpose purpose)
{
        return (unsigned)purpose < AFZ_PURPOSES ? words[purpose].name : "";
}

const char *afz_purpose_what(enum afz_purpose purpose)
{
        return (unsigned)purpose < AFZ_PURPOSES ? words[purpose].what : "";
}

/* ---- putting it in ---- */

/* As much of it as there is room for. */
static void put(struct afz_purposes *p, enum afz_purpose purpose, uint64_t bytes, uint64_t *room)
{
        uint64_t fits = bytes < *room ? bytes : *room;
        p->bytes[purpose] += fits;
        *room -= fits;
}

static uint64_t told(const struct afz_flight *flight, enum afz_metric metric, uint32_t t_ms)
{
        uint64_t value = 0;
        (void)afz_inside_at(flight, metric, t_ms, &value);
        return value;
}

static uint64_t less(uint64_t a, uint64_t b)
{
        return a > b ? a - b : 0;
}

static void put_model(struct afz_purposes *p, const struct afz_inside_model *m, uint64_t *room)
{
        put(p, AFZ_FOR_PARAMETERS, m->parameters, room);
        put(p, AFZ_FOR_BUFFERS, m->buffers, room);
        put(p, AFZ_FOR_OPTIMIZER, m->optimizer, room);
        put(p, AFZ_FOR_GRADIENTS, m->gradients, room);
}

/* ---- the host ---- */

/* What libraries bring along besides what they allocate (tables, relocated code) is no line's, and
 * is there before the first step: what the job needed then less what was allocated. */
static double unseen_at_first(const struct afz_flight *flight)
{
        uint64_t live, taken = 0, used = 0;
        uint32_t t_ms;
        int64_t need;
        if (!afz_step_first(afz_flight_steps(flight), &t_ms) ||
            !afz_column_last(afz_flight_need(flight), t_ms + 1, &need) ||
            !afz_inside_at(flight, AFZ_INSIDE_LIVE, t_ms, &live))
                return 0;
        if (afz_inside_at(flight, AFZ_INSIDE_HEAP_TAKEN, t_ms, &taken))
                (void)afz_inside_at(flight, AFZ_INSIDE_HEAP_USED, t_ms, &used);
        double unseen = (double)need - (double)live - (double)less(taken, used);
        return unseen > 0 ? unseen : 0;
}

/* Lines that were there before the first step and belong to no model. Without a step clock those
 * that are known to be data by their stacks. */
static void put_lines(const struct afz_flight *flight, struct afz_purposes *p, uint64_t *room)
{
        struct afz_site_top top;
        double data = 0;
        bool clock = afz_step_column(flight, 0, UINT32_MAX) != NULL;
        if (!afz_site_top_at(flight, p->t_ms, &top))
                return;
        for (unsigned i = 0; i < top.rows; i++) {
                const struct afz_site_row *row = &top.row[i];
                enum afz_site_use use = afz_site_use_of(flight, row->track);
                struct afz_where where = {0};
                afz_site_where(row->track, &where);
                if (use == AFZ_USE_DATA)
                        data += clock ? row->early_bytes : row->bytes;
                else if (use == AFZ_USE_OTHER && clock && where.line > 0)
                        data += row->early_bytes;
        }
        put(p, AFZ_FOR_DATASET, afz_judge_positive(data), room);
        double code = afz_site_code_bytes(flight, &top) + unseen_at_first(flight);
        put(p, AFZ_FOR_CODE, afz_judge_positive(code), room);
}

static bool host_at(const struct afz_flight *flight, uint32_t t_ms, uint64_t whole,
                    struct afz_purposes *ret)
{
        struct afz_purposes p = {.t_ms = t_ms, .whole_bytes = whole};
        struct afz_inside_model m;
        uint64_t room = whole;
        if (whole == 0 || !afz_inside_model_at(flight, false, t_ms, &m))
                return false;
        put_model(&p, &m, &room);
        put_lines(flight, &p, &room);
        put(&p, AFZ_FOR_BATCH, m.batch, &room);
        put(&p, AFZ_FOR_AHEAD, told(flight, AFZ_INSIDE_LOADER, t_ms), &room);
        put(&p, AFZ_FOR_ACTIVATIONS, m.activations, &room);
        put(&p, AFZ_FOR_SHUFFLE, told(flight, AFZ_INSIDE_SHUFFLE, t_ms), &room);
        put(&p, AFZ_FOR_CACHE,
            less(told(flight, AFZ_INSIDE_HEAP_TAKEN, t_ms),
                 told(flight, AFZ_INSIDE_HEAP_USED, t_ms)),
            &room);
        put(&p, AFZ_FOR_UNEXPLAINED, room, &room);
        *ret = p;
        return true;
}

/* ---- a GPU ---- */

/* What the driver says that the job's processes hold; 0: it does not say. */
static uint64_t vram_at(const struct afz_flight *flight, uint32_t t_ms)
{
        const struct afz_track *proc;
        uint64_t sum = 0;
        int64_t bytes;
        for (size_t at = 0; (proc = afz_flight_next(flight, AFZ_KIND_GPU_PROC, &at));)
                if (afz_gpu_proc_is_ours(proc) && proc->first_ms <= t_ms &&
                    afz_column_last(afz_track_column(proc, AFZ_GPU_PROC_MEM), t_ms + 1, &bytes) &&
                    bytes > 0)
                        sum += (uint64_t)bytes;
        return sum;
}

/* `tensors`: what the framework had in tensors; `reserved`: with what it kept beside. */
static bool gpu_at(const struct afz_flight *flight, uint32_t t_ms, uint64_t tensors,
                   uint64_t reserved, struct afz_purposes *ret)
{
        struct afz_purposes p = {.t_ms = t_ms};
        struct afz_inside_model m;
        uint64_t vram = vram_at(flight, t_ms), room = tensors, rest;
        if (tensors == 0 || !afz_inside_model_at(flight, true, t_ms, &m))
                return false;
        reserved = reserved > tensors ? reserved : tensors;
        p.whole_bytes = vram > reserved ? vram : reserved;
        put_model(&p, &m, &room);
        put(&p, AFZ_FOR_BATCH, m.batch, &room);
        put(&p, AFZ_FOR_ACTIVATIONS, m.activations, &room);
        put(&p, AFZ_FOR_UNEXPLAINED, room, &room);
        rest = p.whole_bytes - tensors;
        put(&p, AFZ_FOR_CACHE, reserved - tensors, &rest);
        put(&p, AFZ_FOR_CONTEXT, rest, &rest);
        *ret = p;
        return true;
}

/* ---- when ---- */

/* The last look at a trainer that told something and made a step, but one: at the very end all is
 * given back. */
static bool last_of(const struct afz_flight *flight, enum afz_metric metric, uint32_t *ret_ms)
{
        struct afz_step_tick tick = {0};
        uint64_t before_ms = 0;
        const struct afz_column *steps = afz_flight_steps(flight);
        for (size_t cursor = 0; afz_step_next(steps, &cursor, &tick) && cursor < steps->count;)
                before_ms = tick.t_ms;
        if (before_ms > 0 && before_ms < UINT32_MAX) {
                *ret_ms = (uint32_t)before_ms;
                return true;
        }
        const struct afz_track *track;
        uint32_t last_ms = 0;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_INSIDE, &at));) {
                const struct afz_column *column = afz_track_column(track, metric);
                uint32_t t_ms = column && column->count ? column->point[column->count - 1].t_ms : 0;
                last_ms = t_ms > last_ms ? t_ms : last_ms;
        }
        *ret_ms = last_ms;
        return last_ms > 0;
}

bool afz_purposes_peak(const struct afz_flight *flight, bool gpu, struct afz_purposes *ret)
{
        uint64_t tensors, reserved = 0;
        uint32_t t_ms, at_ms;
        if (gpu) {
                if (!afz_inside_most(flight, AFZ_INSIDE_GPU_ALLOCATED_PEAK, 0, UINT32_MAX, &tensors,
                                     &t_ms))
                        return false;
                (void)afz_inside_most(flight, AFZ_INSIDE_GPU_RESERVED, 0, UINT32_MAX, &reserved,
                                      &at_ms);
                return gpu_at(flight, t_ms, tensors, reserved, ret);
        }
        const struct afz_column *need = afz_flight_need(flight);
        const struct afz_point *most = NULL;
        for (size_t i = 0; need && i < need->count; i++)
                if (!most || need->point[i].most > most->most)
                        most = &need->point[i];
        return most && most->most > 0 && host_at(flight, most->t_ms, (uint64_t)most->most, ret);
}

bool afz_purposes_now(const struct afz_flight *flight, bool gpu, struct afz_purposes *ret)
{
        uint32_t t_ms;
        int64_t need;
        if (!last_of(flight, gpu ? AFZ_INSIDE_GPU_PARAMETERS : AFZ_INSIDE_PARAMETERS, &t_ms))
                return false;
        if (gpu)
                return gpu_at(flight, t_ms, told(flight, AFZ_INSIDE_GPU_ALLOCATED, t_ms),
                              told(flight, AFZ_INSIDE_GPU_RESERVED, t_ms), ret);
        return afz_column_last(afz_flight_need(flight), t_ms + 1, &need) && need > 0 &&
               host_at(flight, t_ms, (uint64_t)need, ret);
}
