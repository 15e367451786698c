#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "sense.h"
#include "sensor_list.h"

#define SECOND UINT64_C(1000000000)

static void test_texts(void **state)
{
        (void)state;
        static const struct {
                enum afz_sensor_form form;
                const char *text;
                int r;
                int64_t value;
        } row[] = {
                {AFZ_FORM_TEMPERATURE, "45000\n", 0, 45000},
                {AFZ_FORM_TEMPERATURE, "-5000\n", 0, -5000},
                {AFZ_FORM_TEMPERATURE, "-128000\n", -ERANGE, 0},
                {AFZ_FORM_TEMPERATURE, "255000\n", -ERANGE, 0},
                {AFZ_FORM_TEMPERATURE, "", -ENODATA, 0},
                {AFZ_FORM_TEMPERATURE, "45C\n", -EINVAL, 0},
                {AFZ_FORM_TEMPERATURE, "45.0\n", -EINVAL, 0},
                {AFZ_FORM_TEMPERATURE, "99999999999999999999\n", -ERANGE, 0},
                {AFZ_FORM_FLAG, "1\n", 0, 1},
                {AFZ_FORM_FLAG, "2\n", -ERANGE, 0},
                {AFZ_FORM_PERCENT, "87\n", 0, 8700},
                {AFZ_FORM_PERCENT, "101\n", -ERANGE, 0},
                {AFZ_FORM_DISCHARGING, "Discharging\n", 0, 1},
                {AFZ_FORM_DISCHARGING, "Charging\n", 0, 0},
                {AFZ_FORM_DISCHARGING, "Not charging\n", 0, 0},
                {AFZ_FORM_DISCHARGING, "Full\n", 0, 0},
                {AFZ_FORM_DISCHARGING, "Unknown\n", -ENODATA, 0},
                {AFZ_FORM_DISCHARGING, "", -ENODATA, 0},
                {AFZ_FORM_COUNT, "123456789012\n", 0, 123456789012},
                {AFZ_FORM_COUNT, "-1\n", -ERANGE, 0},
        };
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
                int64_t value = 0;
                assert_int_equal(
                        afz_sensor_parse(row[i].form, row[i].text, strlen(row[i].text), &value),
                        row[i].r);
                assert_int_equal(value, row[i].value);
        }
}

#define ZONE  "sys/class/thermal/thermal_zone0/"
#define CHIP  "sys/class/hwmon/hwmon1/"
#define POWER "sys/class/power_supply/"

static const struct afz_fixture_row machine[] = {
        {ZONE "type", "x86_pkg_temp\n"},
        {ZONE "temp", "61000\n"},
        {ZONE "trip_point_0_type", "critical\n"},
        {ZONE "trip_point_0_temp", "105000\n"},
        {ZONE "trip_point_1_type", "passive\n"},
        {ZONE "trip_point_1_temp", "95000\n"},
        {ZONE "trip_point_2_type", "hot\n"},
        {ZONE "trip_point_2_temp", "90000\n"},
        {ZONE "trip_point_3_type", "passive\n"},
        {ZONE "trip_point_3_temp", "0\n"},                     /* not set */
        {"sys/class/thermal/thermal_zone1/temp", "-274000\n"}, /* broken */
        {"sys/class/thermal/cooling_device0/type", "Processor\n"},
        {"sys/class/hwmon/hwmon0/name", "acpitz\n"}, /* repeats a zone */
        {"sys/class/hwmon/hwmon0/device", "-> ../../thermal_zone0"},
        {"sys/class/hwmon/hwmon0/temp1_input", "61000\n"},
        {CHIP "name", "coretemp\n"},
        {CHIP "temp1_input", "62000\n"},
        {CHIP "temp1_label", "Package id 0\n"},
        {CHIP "temp1_max", "80000\n"},
        {CHIP "temp1_crit", "100000\n"},
        {CHIP "temp2_input", "63000\n"},
        {CHIP "temp2_max", "65261850\n"}, /* no limit at all */
        {CHIP "temp_input", "1\n"},
        {CHIP "in0_input", "1200\n"},
        {"sys/class/hwmon/hwmon2/name", "nvme\n"}, /* would wait for the disk */
        {"sys/class/hwmon/hwmon2/temp1_input", "40000\n"},
        {POWER "AC/type", "Mains\n"},
        {POWER "AC/online", "1\n"},
        {POWER "BAT0/type", "Battery\n"},
        {POWER "BAT0/capacity", "87\n"},
        {POWER "BAT0/status", "Discharging\n"},
        {POWER "mouse/type", "Battery\n"},
        {POWER "mouse/scope", "Device\n"},
        {POWER "mouse/capacity", "12\n"},
        {"sys/class/powercap/intel-rapl/enabled", "1\n"},
        {"sys/class/powercap/intel-rapl:0/name", "package-0\n"},
        {"sys/class/powercap/intel-rapl:0/energy_uj", "123456789\n"},
        {"sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n"},
        {0},
};

static struct afz_fixture *f;
static struct afz_batch *batch;
static void *sense;

static int setup(void **state)
{
        (void)state;
        struct afz_target target = {0};
        f = afz_fixture_new(machine);
        assert_int_equal(afz_batch_new(afz_sense_thermal.max_samples, &batch), 0);
        return afz_sense_thermal.open(afz_fixture_env(f), &target, &sense);
}

static int teardown(void **state)
{
        (void)state;
        afz_sense_thermal.close(sense);
        afz_batch_free(batch);
        afz_fixture_free(f);
        return 0;
}

static size_t look(uint64_t later_ns)
{
        afz_fixture_advance(f, later_ns);
        afz_batch_start(batch, afz_env_now(afz_fixture_env(f)));
        assert_int_equal(afz_sense_thermal.read(sense, batch), 0);
        return batch->count;
}

static const struct afz_sample *find(const char *name)
{
        for (size_t i = 0; i < batch->count; i++)
                if (strcmp(batch->sample[i].name, name) == 0)
                        return &batch->sample[i];
        return NULL;
}

#define ABSENT INT64_MIN
static int64_t get(const char *name, enum afz_metric m)
{
        int64_t v;
        assert_non_null(find(name));
        return afz_sample_get(find(name), m, &v) ? v : ABSENT;
}

static void test_values(void **state)
{
        (void)state;
        assert_int_equal(look(SECOND), 6);
        assert_int_equal(get("x86_pkg_temp", AFZ_THERMAL_TEMP), 61000);
        assert_int_equal(get("x86_pkg_temp", AFZ_THERMAL_HOT), 90000);
        assert_int_equal(get("x86_pkg_temp", AFZ_THERMAL_CRITICAL), 105000);
        assert_int_equal(get("coretemp Package id 0", AFZ_THERMAL_TEMP), 62000);
        assert_int_equal(get("coretemp Package id 0", AFZ_THERMAL_HOT), 80000);
        assert_int_equal(get("coretemp Package id 0", AFZ_THERMAL_CRITICAL), 100000);
        assert_int_equal(get("coretemp temp2", AFZ_THERMAL_TEMP), 63000);
        assert_int_equal(get("coretemp temp2", AFZ_THERMAL_HOT), ABSENT);
        assert_int_equal(get("coretemp temp2", AFZ_THERMAL_CRITICAL), ABSENT);
        assert_int_equal(get("AC", AFZ_POWER_ONLINE), 1);
        assert_int_equal(get("AC", AFZ_POWER_BATTERY), ABSENT);
        assert_int_equal(get("BAT0", AFZ_POWER_BATTERY), 8700);
        assert_int_equal(get("BAT0", AFZ_POWER_DISCHARGING), 1);
        assert_int_equal(get("BAT0", AFZ_POWER_ONLINE), ABSENT);
        assert_int_equal(get("package-0", AFZ_POWER_ENERGY), 123456789);
        assert_null(find("mouse"));
        assert_string_equal(find("coretemp temp2")->detail, "hwmon1/temp2");
        assert_true(find("coretemp temp2")->subject.id !=
                    find("coretemp Package id 0")->subject.id);
}

static void test_changes(void **state)
{
        (void)state;
        look(SECOND);
        afz_fixture_set(f, ZONE "temp", "70000\n");
        afz_fixture_set(f, POWER "BAT0/status", "Unknown\n");
        afz_fixture_set(f, POWER "BAT0/capacity", "86\n");
        afz_fixture_set(f, CHIP "temp2_input", "garbage\n");
        look(SECOND);
        assert_int_equal(get("x86_pkg_temp", AFZ_THERMAL_TEMP), 70000);
        assert_int_equal(get("BAT0", AFZ_POWER_DISCHARGING), ABSENT);
        assert_int_equal(get("BAT0", AFZ_POWER_BATTERY), 8600);
        assert_null(find("coretemp temp2"));
}

static void test_listed_again(void **state)
{
        (void)state;
        look(SECOND);
        const struct afz_sample *old = find("AC");
        const char *name = old->name;
        afz_fixture_set(f, POWER "UPS0/type", "UPS\n");
        afz_fixture_set(f, POWER "UPS0/capacity", "50\n");
        afz_fixture_remove(f, POWER "AC");
        look(SECOND);
        assert_null(find("UPS0"));
        look(61 * SECOND);
        assert_int_equal(get("UPS0", AFZ_POWER_BATTERY), 5000);
        assert_null(find("AC"));
        assert_string_equal(name, "AC"); /* a view may still show it */
        afz_fixture_remove(f, "sys/class");
        assert_int_equal(look(61 * SECOND), 0);
}

/* A clock that goes on by 30 ms whenever it is asked: every sensor is slow. */
static uint64_t slow_clock(void *ctx)
{
        static uint64_t now = SECOND;
        (void)ctx;
        return now += 30000000;
}

static void test_slow_sensors_are_let_be(void **state)
{
        (void)state;
        afz_fixture_env(f)->now_ns = slow_clock;
        assert_int_equal(look(SECOND), 6);
        assert_int_equal(look(SECOND), 0);
}

static void test_too_many(void **state)
{
        (void)state;
        for (int i = 3; i < 203; i++) {
                char path[96];
                snprintf(path, sizeof path, CHIP "temp%d_input", i);
                afz_fixture_set(f, path, "50000\n");
        }
        look(SECOND);
        assert_int_equal(look(61 * SECOND), AFZ_THERMOMETERS_MAX - 1 + 3); /* one is broken */
        assert_int_equal(batch->dropped, 0);
}

static void test_nothing_there(void **state)
{
        (void)state;
        static const struct afz_fixture_row rows[][4] = {
                {{"proc/", NULL}, {0}},
                {{"sys/class/thermal/", NULL}, {"sys/class/power_supply/", NULL}, {0}},
                {{"sys/class/thermal", "no folder"}, {"sys/class/hwmon/hwmon0/", NULL}, {0}},
                {{"sys/class/thermal/thermal_zone0/type", "x\n"},
                 {"sys/class/powercap/intel-rapl:0/name", "x\n"},
                 {"sys/class/power_supply/AC/online", "1\n"},
                 {0}},
        };
        size_t before = afz_fixture_open_fds();
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct afz_fixture *empty = afz_fixture_new(rows[i]);
                struct afz_target target = {0};
                void *none;
                assert_int_equal(afz_sense_thermal.open(afz_fixture_env(empty), &target, &none),
                                 -ENODATA);
                afz_fixture_free(empty);
        }
        afz_sense_thermal.close(NULL);
        assert_int_equal(afz_fixture_open_fds(), before);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_texts),
                cmocka_unit_test_setup_teardown(test_values, setup, teardown),
                cmocka_unit_test_setup_teardown(test_changes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_listed_again, setup, teardown),
                cmocka_unit_test_setup_teardown(test_slow_sensors_are_let_be, setup, teardown),
                cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
                cmocka_unit_test(test_nothing_there),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
