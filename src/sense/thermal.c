/* The thermal sense: thermometers, supplies, batteries, RAPL. */
#include <errno.h>
#include <stdlib.h>

#include "name_id.h"
#include "sense.h"
#include "sensor_list.h"

/* A sensor is plugged in or a driver loaded: seen within a minute. */
#define LIST_NS UINT64_C(60000000000)
/* Some drivers wait for slow firmware. A reading that took longer than this would be felt in the
 * tick; the sensor is left alone until the next listing. */
#define SLOW_NS UINT64_C(20000000)

struct thermal_sense {
        const struct afz_env *env;
        uint64_t next_list_ns;
        /* Two lists: the texts of the old one are still on show while the new one is used. */
        struct afz_sensor_list list[2];
        unsigned current;
};

static void thermal_close(void *state)
{
        struct thermal_sense *t = state;
        if (!t)
                return;
        afz_sensor_list_close(&t->list[0]);
        afz_sensor_list_close(&t->list[1]);
        free(t);
}

static int thermal_open(const struct afz_env *env, const struct afz_target *target,
                        void **ret_state)
{
        (void)target;
        struct thermal_sense *t = calloc(1, sizeof *t);
        if (!t)
                return -ENOMEM;
        t->env = env;
        if (afz_sensor_list_fill(&t->list[0], env) == 0) {
                thermal_close(t);
                return -ENODATA;
        }
        *ret_state = t;
        return 0;
}

static void list_again(struct thermal_sense *t, uint64_t now_ns)
{
        if (t->next_list_ns == 0) {
                t->next_list_ns = now_ns + LIST_NS; /* open() has just listed them */
                return;
        }
        if (now_ns < t->next_list_ns)
                return;
        t->next_list_ns = now_ns + LIST_NS;
        struct afz_sensor_list *old = &t->list[t->current];
        t->current ^= 1;
        (void)afz_sensor_list_fill(&t->list[t->current], t->env);
        afz_sensor_list_close(old);
}

/* Sleeping devices answer EAGAIN, broken ones ENODATA or EIO: the value stays absent. */
static bool read_file(const struct afz_sensor_file *file, int64_t *ret)
{
        char text[64];
        ssize_t n = afz_fd_read_record(file->fd, text, sizeof text);
        return n > 0 && afz_sensor_parse(file->form, text, (size_t)n, ret) >= 0;
}

static void add_sensor(struct thermal_sense *t, struct afz_sensor *sensor, struct afz_batch *out)
{
        int64_t value[AFZ_SENSOR_FILES];
        bool has[AFZ_SENSOR_FILES], any = false;
        uint64_t before = afz_env_now(t->env);
        for (size_t i = 0; i < sensor->files; i++) {
                has[i] = read_file(&sensor->file[i], &value[i]);
                any |= has[i];
        }
        sensor->slow = afz_env_now(t->env) - before > SLOW_NS;
        if (!any)
                return;
        struct afz_subject subject = {.kind = sensor->kind, .id = afz_name_id(sensor->key)};
        struct afz_sample *s = afz_batch_add(out, subject, sensor->name);
        if (!s)
                return;
        s->detail = sensor->key;
        for (size_t i = 0; i < sensor->files; i++)
                if (has[i])
                        afz_sample_set(s, sensor->file[i].metric, value[i]);
        if (sensor->has_hot)
                afz_sample_set(s, AFZ_THERMAL_HOT, sensor->hot_millicelsius);
        if (sensor->has_critical)
                afz_sample_set(s, AFZ_THERMAL_CRITICAL, sensor->critical_millicelsius);
}

static int thermal_read(void *state, struct afz_batch *out)
{
        struct thermal_sense *t = state;
        list_again(t, out->t_ns);
        struct afz_sensor_list *list = &t->list[t->current];
        for (size_t i = 0; i < list->count; i++)
                if (!list->sensor[i].slow)
                        add_sensor(t, &list->sensor[i], out);
        return 0;
}

const struct afz_sense afz_sense_thermal = {
        .name = "thermal",
        .what = "temperatures, power supply, battery, energy",
        /* Heat moves in seconds, and some sensors are slow to read. */
        .every_ns = UINT64_C(2000000000),
        .max_samples = AFZ_THERMOMETERS_MAX + AFZ_SUPPLIES_MAX,
        .absent = "the machine shows no thermometer, supply or energy counter (usual in a virtual "
                  "machine and in WSL2); heat and power are not seen",
        .denied = NULL,
        .open = thermal_open,
        .read = thermal_read,
        .close = thermal_close,
};
