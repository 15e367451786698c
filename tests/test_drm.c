/* AMD's and Intel's GPUs on made-up trees, and the parser of fdinfo against hostile texts. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "drm_fdinfo.h"
#include "fixture.h"
#include "gpu.h"
#include "sense.h"

#define AMD      "sys/class/drm/card1/device/"
#define AMD_MON  AMD "hwmon/hwmon3/"
#define FD(a, b) "proc/" a "/fd/" b
#define AMD_FD(client, rest)                                                                       \
        "pos:\t0\nflags:\t02100002\ndrm-driver:\tamdgpu\ndrm-client-id:\t" client                  \
        "\ndrm-pdev:\t0000:03:00.0\n" rest

static const struct afz_fixture_row amd[] = {
        {AMD "uevent",
         "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:03:00.0\n"},
        {"sys/class/drm/card1-DP-1/status", "connected\n"},
        {"sys/class/drm/renderD128/dev", "226:128\n"},
        {AMD "unique_id", "abcdef\n"},
        {AMD "mem_info_vram_total", "25753026560\n"},
        {AMD "mem_info_vram_used", "1000000000\n"},
        {AMD "mem_info_gtt_used", "50000000\n"},
        {AMD "gpu_busy_percent", "37\n"},
        {AMD "mem_busy_percent", "garbage\n"},
        {AMD "pcie_replay_count", "2\n"},
        {AMD "current_link_speed", "16.0 GT/s PCIe\n"},
        {AMD "current_link_width", "16\n"},
        {AMD "power/runtime_status", "active\n"},
        {AMD "pp_dpm_sclk", "0: 500Mhz\n1: 1234Mhz *\n2: 2482Mhz\n"},
        {AMD "pp_dpm_mclk", "0: 96Mhz *\n1: 1249Mhz\n"},
        {AMD "ras/umc_err_count", "ue: 1\nce: 5\n"},
        {AMD_MON "temp1_input", "41000\n"},
        {AMD_MON "temp1_crit", "100000\n"},
        {AMD_MON "power1_average", "21000000\n"},
        {AMD_MON "power1_cap", "327000000\n"},
        {AMD_MON "pwm1", "51\n"},
        {AMD_MON "pwm1_max", "255\n"},
        /* One client seen through two descriptors, and a second client. */
        {FD("40", "5"), "-> /dev/dri/renderD128"},
        {"proc/40/fdinfo/5", AMD_FD("7", "drm-memory-vram:\t2048 KiB\n")},
        {FD("40", "6"), "-> /dev/dri/renderD128"},
        {"proc/40/fdinfo/6", AMD_FD("7", "drm-memory-vram:\t2048 KiB\n")},
        {FD("40", "7"), "-> /dev/dri/card1"},
        {"proc/40/fdinfo/7", AMD_FD("8", "drm-total-vram:\t9 MiB\ndrm-resident-vram:\t1 MiB\n")},
        {FD("40", "8"), "-> /home/me/dri"},
        {"proc/40/comm", "python3\n"},
        /* Shares a client with the first: the memory is counted once. */
        {FD("41", "3"), "-> /dev/dri/renderD128"},
        {"proc/41/fdinfo/3", AMD_FD("7", "drm-memory-vram:\t2048 KiB\n")},
        /* Broken, cut and foreign ones. */
        {FD("42", "3"), "-> /dev/dri/renderD128"},
        {"proc/42/fdinfo/3", AMD_FD("9", "drm-memory-vram:\t99999999999999999999 KiB\n")},
        {FD("43", "3"), "-> /dev/dri/renderD129"},
        {"proc/43/fdinfo/3", "drm-driver:\ti915\ndrm-client-id:\t1\ndrm-pdev:\t0000:00:02.0\n"},
        {FD("44", "3"), "-> /dev/dri/renderD128"},
        {0},
};

#define IGPU "sys/class/drm/card0/"
#define XE   "sys/class/drm/card1/"

static const struct afz_fixture_row intel[] = {
        {IGPU "device/uevent", "DRIVER=i915\nPCI_ID=8086:46A6\nPCI_SLOT_NAME=0000:00:02.0\n"},
        {IGPU "gt_act_freq_mhz", "1300\n"},
        {IGPU "gt_RP0_freq_mhz", "1450\n"},
        {XE "device/uevent", "DRIVER=xe\nPCI_ID=8086:56A0\nPCI_SLOT_NAME=0000:05:00.0\n"},
        {XE "device/tile0/gt0/freq0/act_freq", "2400\n"},
        {XE "device/tile0/gt0/freq0/rp0_freq", "2450\n"},
        {XE "device/hwmon/hwmon1/energy1_input", "1000000\n"},
        {XE "device/hwmon/hwmon1/power1_max", "190000000\n"},
        {XE "device/hwmon/hwmon1/temp2_input", "55000\n"},
        {XE "device/current_link_speed", "16.0 GT/s PCIe\n"},
        {XE "device/current_link_width", "8\n"},
        {"proc/9/comm", "train\n"},
        {"proc/9/fd/4", "-> /dev/dri/renderD129"},
        {"proc/9/fdinfo/4",
         "drm-driver:\txe\ndrm-client-id:\t3\ndrm-pdev:\t0000:05:00.0\n"
         "drm-total-vram0:\t23992 KiB\ndrm-shared-vram0:\t16 MiB\ndrm-resident-vram0:\t23000 KiB\n"
         "drm-cycles-rcs:\t28257900\ndrm-total-cycles-rcs:\t7655183225\n"},
        {0},
};

struct bench {
        struct afz_fixture *fixture;
        void *sense;
        struct afz_batch *batch;
        size_t fds;
};

static void start(struct bench *b, const struct afz_fixture_row *rows)
{
        struct afz_target all = {0};
        unsetenv("ANTIFREEZE_NVML");
        b->fds = afz_fixture_open_fds();
        b->fixture = afz_fixture_new(rows);
        assert_int_equal(afz_batch_new(afz_sense_gpu.max_samples, &b->batch), 0);
        assert_int_equal(afz_sense_gpu.open(afz_fixture_env(b->fixture), &all, &b->sense), 0);
}

static void done(struct bench *b)
{
        afz_sense_gpu.close(b->sense);
        afz_batch_free(b->batch);
        afz_fixture_free(b->fixture);
        assert_int_equal(afz_fixture_open_fds(), b->fds);
}

static void read_now(struct bench *b)
{
        afz_batch_start(b->batch, afz_env_now(afz_fixture_env(b->fixture)));
        assert_int_equal(afz_sense_gpu.read(b->sense, b->batch), 0);
}

static const struct afz_sample *find(const struct bench *b, enum afz_kind kind, uint64_t id)
{
        for (size_t i = 0; i < b->batch->count; i++)
                if (b->batch->sample[i].subject.kind == kind &&
                    b->batch->sample[i].subject.id == id)
                        return &b->batch->sample[i];
        return NULL;
}

struct want {
        enum afz_metric metric;
        int64_t value; /* -1: absent */
};

static void expect(const struct afz_sample *s, const struct want *want, size_t rows)
{
        assert_non_null(s);
        for (size_t i = 0; i < rows; i++) {
                int64_t value = -1;
                (void)afz_sample_get(s, want[i].metric, &value);
                if (value != want[i].value)
                        fail_msg("%s is %lld, not %lld", afz_metric_info(want[i].metric)->name,
                                 (long long)value, (long long)want[i].value);
        }
}

#define EXPECT(sample, ...)                                                                        \
        expect(sample, (const struct want[]){__VA_ARGS__},                                         \
               sizeof((const struct want[]){__VA_ARGS__}) / sizeof(struct want))

static void an_amd_card(void **state)
{
        (void)state;
        struct bench b = {0};
        start(&b, amd);
        read_now(&b);
        const struct afz_sample *gpu = find(&b, AFZ_KIND_GPU, 0);
        EXPECT(gpu, {AFZ_GPU_MEM_TOTAL, 25753026560}, {AFZ_GPU_MEM_USED, 1000000000},
               {AFZ_GPU_MEM_FREE, 24753026560}, {AFZ_GPU_GTT_USED, 50000000}, {AFZ_GPU_UTIL, 3700},
               {AFZ_GPU_MEM_UTIL, -1}, {AFZ_GPU_TEMP, 41000}, {AFZ_GPU_TEMP_SLOWDOWN, 100000},
               {AFZ_GPU_POWER, 21000}, {AFZ_GPU_POWER_LIMIT, 327000}, {AFZ_GPU_FAN, 2000},
               {AFZ_GPU_CLOCK, 1234000000}, {AFZ_GPU_CLOCK_MAX, 2482000000},
               {AFZ_GPU_MEM_CLOCK, 96000000}, {AFZ_GPU_ECC_CORRECTED, 5},
               {AFZ_GPU_ECC_UNCORRECTED, 1}, {AFZ_GPU_PCIE_GEN, 4}, {AFZ_GPU_PCIE_WIDTH, 16},
               {AFZ_GPU_PCIE_REPLAYS, 2}, {AFZ_GPU_PCIE_RX, -1}, {AFZ_GPU_PROCESSES, 1});
        assert_string_equal(gpu->name, "AMD GPU 1002:744C");
        assert_string_equal(gpu->detail, "abcdef");
        assert_null(find(&b, AFZ_KIND_GPU, 1));
        done(&b);
}

/* A process that is closed to us may hold anything: then how many there are is not known. */
static void processes_that_may_not_be_seen(void **state)
{
        (void)state;
        struct bench b = {0};
        start(&b, amd);
        afz_fixture_set(b.fixture, "proc/50/comm", "theirs\n");
        afz_fixture_set(b.fixture, "not-read", "EACCES proc/50/fd\n");
        read_now(&b);
        read_now(&b);
        EXPECT(find(&b, AFZ_KIND_GPU, 0), {AFZ_GPU_PROCESSES, -1});
        assert_non_null(find(&b, AFZ_KIND_GPU_PROC, 40));
        afz_fixture_remove(b.fixture, "proc/50");
        read_now(&b);
        EXPECT(find(&b, AFZ_KIND_GPU, 0), {AFZ_GPU_PROCESSES, 1});
        done(&b);
}

static void processes_of_an_amd_card(void **state)
{
        (void)state;
        struct bench b = {0};
        start(&b, amd);
        for (int i = 0; i < 3; i++) {
                read_now(&b);
                const struct afz_sample *p = find(&b, AFZ_KIND_GPU_PROC, 40);
                EXPECT(p, {AFZ_GPU_PROC_MEM, (2 + 1) << 20}, {AFZ_GPU_PROC_GPU, 0});
                assert_string_equal(p->name, "python3");
                for (uint64_t pid = 41; pid <= 44; pid++)
                        assert_null(find(&b, AFZ_KIND_GPU_PROC, pid));
        }
        /* It grows; its descriptor becomes another file; it is gone. */
        afz_fixture_set(b.fixture, "proc/40/fdinfo/5", AMD_FD("7", "drm-memory-vram:\t4 MiB\n"));
        read_now(&b);
        EXPECT(find(&b, AFZ_KIND_GPU_PROC, 40), {AFZ_GPU_PROC_MEM, 5 << 20});
        afz_fixture_set(b.fixture, "proc/40/fdinfo/7", "pos:\t0\nflags:\t02\n");
        read_now(&b);
        EXPECT(find(&b, AFZ_KIND_GPU_PROC, 40), {AFZ_GPU_PROC_MEM, 4 << 20});
        afz_fixture_remove(b.fixture, "proc/40");
        read_now(&b);
        read_now(&b);
        assert_null(find(&b, AFZ_KIND_GPU_PROC, 40));
        /* The other holder of the shared client is found in a later round. */
        EXPECT(find(&b, AFZ_KIND_GPU_PROC, 41), {AFZ_GPU_PROC_MEM, 2 << 20});
        done(&b);
}

static void a_sleeping_card_is_left_alone(void **state)
{
        (void)state;
        struct bench b = {0};
        start(&b, amd);
        afz_fixture_set(b.fixture, AMD "power/runtime_status", "suspended\n");
        read_now(&b);
        EXPECT(find(&b, AFZ_KIND_GPU, 0), {AFZ_GPU_MEM_USED, -1}, {AFZ_GPU_UTIL, -1},
               {AFZ_GPU_TEMP, -1});
        done(&b);
}

static void broken_files_are_absent_values(void **state)
{
        (void)state;
        static const char *const texts[] = {
                "",   "\n",    "12x\n",  "-5\n", "99999999999999999999\n",
                "12", "1 2\n", "0x10\n", "\0",   "ten\n"};
        struct bench b = {0};
        start(&b, amd);
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                afz_fixture_set(b.fixture, AMD "mem_info_vram_used", texts[i]);
                afz_fixture_set(b.fixture, AMD "pp_dpm_sclk", texts[i]);
                afz_fixture_set(b.fixture, AMD "ras/umc_err_count", texts[i]);
                afz_fixture_set(b.fixture, AMD "current_link_speed", texts[i]);
                read_now(&b);
                EXPECT(find(&b, AFZ_KIND_GPU, 0), {AFZ_GPU_MEM_USED, -1}, {AFZ_GPU_MEM_FREE, -1},
                       {AFZ_GPU_CLOCK, -1}, {AFZ_GPU_ECC_CORRECTED, -1}, {AFZ_GPU_PCIE_GEN, -1},
                       {AFZ_GPU_UTIL, 3700});
        }
        afz_fixture_break(b.fixture, AMD "mem_info_vram_total");
        afz_fixture_remove(b.fixture, AMD "hwmon");
        read_now(&b);
        EXPECT(find(&b, AFZ_KIND_GPU, 0), {AFZ_GPU_MEM_TOTAL, -1}, {AFZ_GPU_POWER, -1});
        done(&b);
}

static void intel_cards(void **state)
{
        (void)state;
        struct bench b = {0};
        start(&b, intel);
        read_now(&b);
        EXPECT(find(&b, AFZ_KIND_GPU, 0), {AFZ_GPU_UNIFIED, 1}, {AFZ_GPU_CLOCK, 1300000000},
               {AFZ_GPU_CLOCK_MAX, 1450000000}, {AFZ_GPU_MEM_TOTAL, -1}, {AFZ_GPU_UTIL, -1},
               {AFZ_GPU_POWER, -1}, {AFZ_GPU_PROCESSES, 0});
        EXPECT(find(&b, AFZ_KIND_GPU, 1), {AFZ_GPU_UNIFIED, 0}, {AFZ_GPU_CLOCK, 2400000000},
               {AFZ_GPU_CLOCK_MAX, 2450000000}, {AFZ_GPU_POWER, -1}, {AFZ_GPU_POWER_LIMIT, 190000},
               {AFZ_GPU_TEMP, 55000}, {AFZ_GPU_PCIE_GEN, 4}, {AFZ_GPU_PCIE_WIDTH, 8},
               {AFZ_GPU_PROCESSES, 1});
        EXPECT(find(&b, AFZ_KIND_GPU_PROC, UINT64_C(1) << 32 | 9), {AFZ_GPU_PROC_MEM, 23000 << 10});
        assert_string_equal(find(&b, AFZ_KIND_GPU, 1)->detail, "0000:05:00.0");
        /* 60 J in 2 s are 30 W; a counter that was reset is no power. */
        afz_fixture_advance(b.fixture, 2000000000);
        afz_fixture_set(b.fixture, XE "device/hwmon/hwmon1/energy1_input", "61000000\n");
        read_now(&b);
        EXPECT(find(&b, AFZ_KIND_GPU, 1), {AFZ_GPU_POWER, 30000});
        afz_fixture_advance(b.fixture, 1000000000);
        afz_fixture_set(b.fixture, XE "device/hwmon/hwmon1/energy1_input", "5\n");
        read_now(&b);
        EXPECT(find(&b, AFZ_KIND_GPU, 1), {AFZ_GPU_POWER, -1});
        done(&b);
}

static void other_cards_are_not_ours(void **state)
{
        (void)state;
        static const struct afz_fixture_row rows[] = {
                {"sys/class/drm/card0/device/uevent", "DRIVER=virtio-pci\nPCI_ID=1AF4:1050\n"},
                {"sys/class/drm/cardboard/device/uevent", "DRIVER=amdgpu\n"},
                {"sys/class/drm/card/device/uevent", "DRIVER=amdgpu\n"},
                {"sys/class/drm/card1-HDMI-A-1/device/uevent", "DRIVER=amdgpu\n"},
                {"sys/class/drm/card2/device/uevent", "DRIVER=amdgp"},
                {0},
        };
        struct afz_target all = {0};
        void *sense = NULL;
        struct afz_fixture *f = afz_fixture_new(rows);
        unsetenv("ANTIFREEZE_NVML");
        assert_int_equal(afz_sense_gpu.open(afz_fixture_env(f), &all, &sense), -ENODATA);
        assert_null(sense);
        afz_fixture_free(f);
}

static void fdinfo_texts(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                int result;
                int64_t vram, system, client; /* -1: absent */
        } rows[] = {
                {"drm-driver: amdgpu\n", 0, -1, -1, -1},
                {"drm-driver: amdgpu\ndrm-client-id: 3\ndrm-memory-vram: 5 KiB\n", 0, 5120, -1, 3},
                {"drm-driver: xe\ndrm-total-vram0: 7\ndrm-total-vram1: 1 MiB\n", 0, 1048583, -1,
                 -1},
                {"drm-driver: i915\ndrm-resident-system0: 6 KiB\n", 0, -1, 6144, -1},
                {"drm-driver: i915\ndrm-resident-local0: 6 KiB\n", 0, 6144, -1, -1},
                {"drm-driver: a\ndrm-total-vram: 9\ndrm-resident-vram: 0\n", 0, 0, -1, -1},
                {"drm-driver: a\ndrm-total-cycles-rcs: x\ndrm-engine-gfx: 5 ns\n", 0, -1, -1, -1},
                {"drm-driver: a\ndrm-memory-vram: 5", 0, -1, -1, -1},
                {"", -ENODATA, -1, -1, -1},
                {"pos: 0\nflags: 02\n", -ENODATA, -1, -1, -1},
                {"drm-driver: a", -ENODATA, -1, -1, -1},
                {"drm-driver:\n", -EINVAL, -1, -1, -1},
                {"drm-driver: a\ndrm-driver: b\n", -EINVAL, -1, -1, -1},
                {"drm-driver: a\ndrm-client-id: 1\ndrm-client-id: 2\n", -EINVAL, -1, -1, -1},
                {"drm-driver: a\ndrm-client-id: -1\n", -EINVAL, -1, -1, -1},
                {"drm-driver: a\ndrm-memory-vram: 5 GiB\n", -EINVAL, -1, -1, -1},
                {"drm-driver: a\ndrm-memory-vram: 5KiB\n", -EINVAL, -1, -1, -1},
                {"drm-driver: a\ndrm-memory-vram: 18446744073709551615 KiB\n", -EINVAL, -1, -1, -1},
                {"drm-driver: a\ndrm-memory-vram: 18446744073709551615\ndrm-memory-vram1: 1\n",
                 -EINVAL, -1, -1, -1},
                {"drm-driver: a\ndrm-memory-vram:\n", -EINVAL, -1, -1, -1},
        };
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct afz_drm_fdinfo info = {.client_id = 77};
                int r = afz_drm_fdinfo_parse(afz_span_str(rows[i].text), &info);
                if (r != rows[i].result)
                        fail_msg("row %zu: %d, not %d", i, r, rows[i].result);
                if (r < 0) {
                        assert_int_equal(info.client_id, 77); /* untouched */
                        continue;
                }
                assert_int_equal(info.has_vram ? (int64_t)info.vram_bytes : -1, rows[i].vram);
                assert_int_equal(info.has_system ? (int64_t)info.system_bytes : -1, rows[i].system);
                assert_int_equal(info.has_client_id ? (int64_t)info.client_id : -1, rows[i].client);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_amd_card),
                cmocka_unit_test(processes_that_may_not_be_seen),
                cmocka_unit_test(processes_of_an_amd_card),
                cmocka_unit_test(a_sleeping_card_is_left_alone),
                cmocka_unit_test(broken_files_are_absent_values),
                cmocka_unit_test(intel_cards),
                cmocka_unit_test(other_cards_are_not_ours),
                cmocka_unit_test(fdinfo_texts),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
