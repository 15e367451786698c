#ifndef AFZ_SENSOR_LIST_H
#define AFZ_SENSOR_LIST_H
/* The thermometers and supplies of a machine, as /sys lists them: thermal zones, hwmon inputs,
 * power supplies, RAPL domains. Found once, and listed anew now and then; in between only their
 * values are read, through descriptors that stay open.
 *
 * Left out: hwmon inputs that repeat a thermal zone, batteries of mice and headsets, and drivers
 * that ask a disk for its temperature with a command (a stuck disk would hold our tick).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "env.h"
#include "metric.h"

enum {
        AFZ_THERMOMETERS_MAX = 64, /* a server has one a core: more than anybody looks at */
        AFZ_SUPPLIES_MAX = 32,
        AFZ_SENSOR_FILES = 2, /* what is read again and again: a supply has two */
};

/* How a file's text becomes a value. */
enum afz_sensor_form {
        AFZ_FORM_TEMPERATURE, /* millicelsius, in the range that a machine can be in */
        AFZ_FORM_FLAG,        /* 0 or 1 */
        AFZ_FORM_PERCENT,     /* to permyriad */
        AFZ_FORM_DISCHARGING, /* "Discharging", "Charging", "Full", ... */
        AFZ_FORM_COUNT,
};

struct afz_sensor_file {
        int fd; /* -1: not there */
        enum afz_metric metric;
        enum afz_sensor_form form;
};

struct afz_sensor {
        enum afz_kind kind; /* THERMAL or POWER */
        char key[48]; /* "thermal_zone0", "hwmon2/temp1", "BAT0": what its number is made of */
        char name[64];
        bool has_hot, has_critical;
        int64_t hot_millicelsius, critical_millicelsius;
        bool slow; /* held us up: not read again until the next listing */
        size_t files;
        struct afz_sensor_file file[AFZ_SENSOR_FILES];
};

struct afz_sensor_list {
        size_t count;
        struct afz_sensor sensor[AFZ_THERMOMETERS_MAX + AFZ_SUPPLIES_MAX];
};

/* Fills an empty list and opens the sensors' files. Returns how many sensors there are. */
size_t afz_sensor_list_fill(struct afz_sensor_list *list, const struct afz_env *env);

/* Closes the files; the texts stay as they are. */
void afz_sensor_list_close(struct afz_sensor_list *list);

/* The value of a text that a file of this form holds. Pure; -EINVAL for garbage, -ERANGE for what
 * cannot be (a broken thermometer reads -128 or 255 degrees), -ENODATA for "Unknown". */
int afz_sensor_parse(enum afz_sensor_form form, const char *text, size_t n, int64_t *ret);

#endif
