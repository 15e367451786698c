#include "sensor_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "count_of.h"
#include "dir.h"

/* A running machine is in this range; what a thermometer says beyond it is its way to say "broken"
 * (-128, -273, 255 degrees), and a limit beyond it is none. */
#define MIN_MILLICELSIUS (-60000)
#define MAX_MILLICELSIUS 200000

enum { MAX_TRIPS = 16 }; /* trip points of a zone; the kernel allows 12 */

/* Drivers whose every reading sends a command to a device and waits for it. */
static const char *const waits_for_device[] = {"drivetemp", "nvme"};

int afz_sensor_parse(enum afz_sensor_form form, const char *text, size_t n, int64_t *ret)
{
        static const char *const charging[] = {"Charging", "Not charging", "Full"};
        struct afz_span word = afz_span_trim((struct afz_span){text, n});
        int64_t value;
        if (form == AFZ_FORM_DISCHARGING) {
                if (afz_span_eq(word, "Discharging")) {
                        *ret = 1;
                        return 0;
                }
                for (size_t i = 0; i < AFZ_COUNT_OF(charging); i++) {
                        if (afz_span_eq(word, charging[i])) {
                                *ret = 0;
                                return 0;
                        }
                }
                return -ENODATA;
        }
        int r = afz_span_i64(word, &value);
        if (r < 0)
                return r;
        static const struct {
                int64_t min, max, scale;
        } range[] = {
                [AFZ_FORM_TEMPERATURE] = {MIN_MILLICELSIUS, MAX_MILLICELSIUS, 1},
                [AFZ_FORM_FLAG] = {0, 1, 1},
                [AFZ_FORM_PERCENT] = {0, 100, 100},
                [AFZ_FORM_COUNT] = {0, INT64_MAX, 1},
        };
        if (value < range[form].min || value > range[form].max)
                return -ERANGE;
        *ret = value * range[form].scale;
        return 0;
}

static int read_word(const struct afz_env *env, const char *path, char *buf, size_t cap)
{
        char text[128];
        struct afz_span span;
        int r = afz_env_read(env, AFZ_ROOT_SYS, path, text, sizeof text, &span);
        if (r < 0)
                return r;
        return afz_span_copy(afz_span_trim(span), buf, cap) > 0 ? 0 : -ENODATA;
}

static int read_limit(const struct afz_env *env, const char *path, int64_t *ret)
{
        char text[64];
        int r = read_word(env, path, text, sizeof text);
        if (r >= 0)
                r = afz_sensor_parse(AFZ_FORM_TEMPERATURE, text, strlen(text), ret);
        /* A limit of 0 or less is one that is not set. */
        return r >= 0 && *ret <= 0 ? -ENODATA : r;
}

static size_t count_kind(const struct afz_sensor_list *list, enum afz_kind kind)
{
        size_t n = 0;
        for (size_t i = 0; i < list->count; i++)
                n += list->sensor[i].kind == kind;
        return n;
}

/* A new sensor at the end of the list, which counts only when keep() is called for it. */
static struct afz_sensor *draft(struct afz_sensor_list *list, enum afz_kind kind, const char *key)
{
        size_t max = kind == AFZ_KIND_THERMAL ? AFZ_THERMOMETERS_MAX : AFZ_SUPPLIES_MAX;
        if (count_kind(list, kind) >= max)
                return NULL;
        struct afz_sensor *s = &list->sensor[list->count];
        *s = (struct afz_sensor){.kind = kind};
        return afz_path(s->key, sizeof s->key, "%s", key) < 0 ? NULL : s;
}

static void add_file(struct afz_sensor *s, const struct afz_env *env, const char *path,
                     enum afz_metric metric, enum afz_sensor_form form)
{
        int fd = afz_env_open(env, AFZ_ROOT_SYS, path, 0);
        if (fd >= 0)
                s->file[s->files++] = (struct afz_sensor_file){fd, metric, form};
}

static void keep(struct afz_sensor_list *list, const struct afz_sensor *s)
{
        if (s->files > 0)
                list->count++;
}

/* The lowest trip point of each sort. */
static void find_trips(struct afz_sensor *s, const struct afz_env *env, const char *zone)
{
        for (int i = 0; i < MAX_TRIPS; i++) {
                char path[128], type[32];
                int64_t temp;
                if (afz_path(path, sizeof path, "class/thermal/%s/trip_point_%d_type", zone, i) <
                            0 ||
                    read_word(env, path, type, sizeof type) < 0)
                        return;
                if (afz_path(path, sizeof path, "class/thermal/%s/trip_point_%d_temp", zone, i) <
                            0 ||
                    read_limit(env, path, &temp) < 0)
                        continue;
                if (strcmp(type, "critical") == 0) {
                        if (!s->has_critical || temp < s->critical_millicelsius)
                                s->critical_millicelsius = temp;
                        s->has_critical = true;
                } else if (strcmp(type, "passive") == 0 || strcmp(type, "hot") == 0) {
                        if (!s->has_hot || temp < s->hot_millicelsius)
                                s->hot_millicelsius = temp;
                        s->has_hot = true;
                }
        }
}

static void add_zone(struct afz_sensor_list *list, const struct afz_env *env, const char *zone)
{
        char path[128];
        struct afz_sensor *s = draft(list, AFZ_KIND_THERMAL, zone);
        if (!s || strncmp(zone, "thermal_zone", 12) != 0)
                return;
        if (afz_path(path, sizeof path, "class/thermal/%s/type", zone) < 0 ||
            read_word(env, path, s->name, sizeof s->name) < 0)
                memcpy(s->name, s->key, sizeof s->key);
        if (afz_path(path, sizeof path, "class/thermal/%s/temp", zone) >= 0)
                add_file(s, env, path, AFZ_THERMAL_TEMP, AFZ_FORM_TEMPERATURE);
        find_trips(s, env, zone);
        keep(list, s);
}

static void add_input(struct afz_sensor_list *list, const struct afz_env *env, const char *hwmon,
                      const char *chip, const char *input)
{
        char path[160], base[16], key[48], label[48];
        size_t n = strlen(input);
        static const char ending[] = "_input";
        /* "temp12_input" -> "temp12" */
        if (strncmp(input, "temp", 4) != 0 || !afz_is_digit(input[4]) || n < sizeof ending - 1 ||
            strcmp(input + n - (sizeof ending - 1), ending) != 0 ||
            n - (sizeof ending - 1) >= sizeof base)
                return;
        snprintf(base, sizeof base, "%.*s", (int)(n - (sizeof ending - 1)), input);
        if (afz_path(key, sizeof key, "%s/%s", hwmon, base) < 0)
                return;
        struct afz_sensor *s = draft(list, AFZ_KIND_THERMAL, key);
        if (!s)
                return;
        if (afz_path(path, sizeof path, "class/hwmon/%s_label", key) < 0 ||
            read_word(env, path, label, sizeof label) < 0)
                memcpy(label, base, sizeof base);
        /* A name that is too long is cut: it is for people. */
        (void)snprintf(s->name, sizeof s->name, "%.15s %s", chip, label);
        if (afz_path(path, sizeof path, "class/hwmon/%s_max", key) >= 0)
                s->has_hot = read_limit(env, path, &s->hot_millicelsius) >= 0;
        if (afz_path(path, sizeof path, "class/hwmon/%s_crit", key) >= 0)
                s->has_critical = read_limit(env, path, &s->critical_millicelsius) >= 0;
        if (afz_path(path, sizeof path, "class/hwmon/%s_input", key) >= 0)
                add_file(s, env, path, AFZ_THERMAL_TEMP, AFZ_FORM_TEMPERATURE);
        keep(list, s);
}

/* Every thermal zone is shown as a hwmon device too, whose parent it is. */
static bool repeats_zone(const struct afz_env *env, const char *hwmon)
{
        char path[128], target[512];
        return afz_path(path, sizeof path, "class/hwmon/%s/device", hwmon) >= 0 &&
               afz_env_readlink(env, AFZ_ROOT_SYS, path, target, sizeof target) >= 0 &&
               strstr(target, "thermal_zone") != NULL;
}

static void add_hwmon(struct afz_sensor_list *list, const struct afz_env *env, const char *hwmon)
{
        char path[128], chip[32];
        struct afz_dir dir;
        if (afz_path(path, sizeof path, "class/hwmon/%s/name", hwmon) < 0 ||
            read_word(env, path, chip, sizeof chip) < 0 || repeats_zone(env, hwmon))
                return;
        for (size_t i = 0; i < AFZ_COUNT_OF(waits_for_device); i++)
                if (strcmp(chip, waits_for_device[i]) == 0)
                        return;
        if (afz_path(path, sizeof path, "class/hwmon/%s", hwmon) < 0)
                return;
        int r = afz_dir_open(&dir, env, AFZ_ROOT_SYS, path);
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0)
                add_input(list, env, hwmon, chip, dir.name);
        afz_dir_close(&dir);
}

static void add_supply(struct afz_sensor_list *list, const struct afz_env *env, const char *supply)
{
        char path[128], type[32], scope[32];
        struct afz_sensor *s = draft(list, AFZ_KIND_POWER, supply);
        if (!s || afz_path(path, sizeof path, "class/power_supply/%s/type", supply) < 0 ||
            read_word(env, path, type, sizeof type) < 0)
                return;
        if (afz_path(path, sizeof path, "class/power_supply/%s/scope", supply) >= 0 &&
            read_word(env, path, scope, sizeof scope) >= 0 && strcmp(scope, "Device") == 0)
                return;
        memcpy(s->name, s->key, sizeof s->key);
        if (strcmp(type, "Battery") == 0 || strcmp(type, "UPS") == 0) {
                if (afz_path(path, sizeof path, "class/power_supply/%s/capacity", supply) >= 0)
                        add_file(s, env, path, AFZ_POWER_BATTERY, AFZ_FORM_PERCENT);
                if (afz_path(path, sizeof path, "class/power_supply/%s/status", supply) >= 0)
                        add_file(s, env, path, AFZ_POWER_DISCHARGING, AFZ_FORM_DISCHARGING);
        } else if (afz_path(path, sizeof path, "class/power_supply/%s/online", supply) >= 0) {
                add_file(s, env, path, AFZ_POWER_ONLINE, AFZ_FORM_FLAG);
        }
        keep(list, s);
}

/* The counter starts anew at max_energy_range_uj; a counter that goes backwards has no rate. */
static void add_domain(struct afz_sensor_list *list, const struct afz_env *env, const char *domain)
{
        char path[128], name[32];
        struct afz_sensor *s = draft(list, AFZ_KIND_POWER, domain);
        if (!s || afz_path(path, sizeof path, "class/powercap/%s/energy_uj", domain) < 0)
                return;
        /* Readable by root alone since 2020 (it leaks what other programs compute). */
        add_file(s, env, path, AFZ_POWER_ENERGY, AFZ_FORM_COUNT);
        if (afz_path(path, sizeof path, "class/powercap/%s/name", domain) >= 0 &&
            read_word(env, path, name, sizeof name) >= 0)
                (void)snprintf(s->name, sizeof s->name, "%s", name);
        else
                memcpy(s->name, s->key, sizeof s->key);
        keep(list, s);
}

size_t afz_sensor_list_fill(struct afz_sensor_list *list, const struct afz_env *env)
{
        static const struct {
                const char *folder;
                void (*add)(struct afz_sensor_list *list, const struct afz_env *env,
                            const char *name);
        } class[] = {
                {"class/thermal", add_zone},
                {"class/hwmon", add_hwmon},
                {"class/power_supply", add_supply},
                {"class/powercap", add_domain},
        };
        list->count = 0;
        for (size_t i = 0; i < AFZ_COUNT_OF(class); i++) {
                struct afz_dir dir;
                int r = afz_dir_open(&dir, env, AFZ_ROOT_SYS, class[i].folder);
                while (r >= 0 && (r = afz_dir_next(&dir)) > 0)
                        class[i].add(list, env, dir.name);
                afz_dir_close(&dir);
        }
        return list->count;
}

void afz_sensor_list_close(struct afz_sensor_list *list)
{
        for (size_t i = 0; i < list->count; i++) {
                struct afz_sensor *s = &list->sensor[i];
                for (size_t f = 0; f < s->files; f++)
                        close(s->file[f].fd);
                s->files = 0;
        }
}
