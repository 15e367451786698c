/* What the GPU sense says of NVIDIA's GPUs, through fake_nvml. */
#include "gpu_bench.h"

/* ---- values ---- */

static void one_gpu_tells_everything(void **state)
{
        static const struct {
                enum afz_metric metric;
                int64_t value;
        } want[] = {
                {AFZ_GPU_MEM_TOTAL, 1000000},
                {AFZ_GPU_MEM_USED, 300000},
                {AFZ_GPU_MEM_FREE, 600000},
                {AFZ_GPU_MEM_RESERVED, 100000},
                {AFZ_GPU_UNIFIED, 0},
                {AFZ_GPU_UTIL, 4200},
                {AFZ_GPU_MEM_UTIL, 700},
                {AFZ_GPU_TEMP, 34000},
                {AFZ_GPU_TEMP_SLOWDOWN, 87000},
                {AFZ_GPU_POWER, 76543},
                {AFZ_GPU_POWER_LIMIT, 700000},
                {AFZ_GPU_FAN, 3000},
                {AFZ_GPU_CLOCK, 345000000},
                {AFZ_GPU_CLOCK_MAX, 1980000000},
                {AFZ_GPU_MEM_CLOCK, 3201000000},
                {AFZ_GPU_THROTTLE, 1},
                {AFZ_GPU_ECC_CORRECTED, 2},
                {AFZ_GPU_ECC_UNCORRECTED, 3},
                {AFZ_GPU_PCIE_RX, 11000},
                {AFZ_GPU_PCIE_TX, 12000},
                {AFZ_GPU_PCIE_GEN, 5},
                {AFZ_GPU_PCIE_WIDTH, 16},
                {AFZ_GPU_PCIE_REPLAYS, 4},
                {AFZ_GPU_PROCESSES, 5},
        };
        struct bench *b = *state;
        start(b, ONE_GPU);
        read_fresh(b);
        const struct afz_sample *gpu = find(b, AFZ_KIND_GPU, 0);
        for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
                expect(gpu, want[i].metric, want[i].value);
        assert_string_equal(gpu->name, "NVIDIA H200");
        assert_string_equal(gpu->detail, "GPU-1");
        expect_absent(gpu, AFZ_GPU_XID);
        expect_absent(gpu, AFZ_GPU_PARENT);
        const struct afz_gpu_status *s = afz_gpu_status(b->sense);
        assert_int_equal(s->state, AFZ_GPU_OK);
        assert_string_equal(s->driver, "580.95.05");
        assert_string_equal(s->nvml, "13.580.95.05");
        assert_string_equal(s->module, "580.95.05");
        assert_int_equal(s->cuda_version, 13000);
        assert_int_equal(s->gpus, 1);
        assert_string_equal(s->gpu[0].name, "NVIDIA H200");
        assert_string_equal(s->gpu[0].pci, "00000000:01:00.0");
}

static void values_follow_the_driver(void **state)
{
        struct bench *b = *state;
        start(b, "gpu 0 name A\ngpu 0 mem 100 10 90\n");
        read_fresh(b);
        expect(find(b, AFZ_KIND_GPU, 0), AFZ_GPU_MEM_USED, 10);
        expect_absent(find(b, AFZ_KIND_GPU, 0), AFZ_GPU_MEM_RESERVED);
        say(b, "gpu 0 name A\ngpu 0 mem 100 60 40 0\nproc 0 7 50\n");
        read_fresh(b);
        expect(find(b, AFZ_KIND_GPU, 0), AFZ_GPU_MEM_USED, 60);
        expect(find(b, AFZ_KIND_GPU, 0), AFZ_GPU_MEM_RESERVED, 0);
        expect(find(b, AFZ_KIND_GPU_PROC, 7), AFZ_GPU_PROC_MEM, 50);
        assert_true(afz_gpu_helper_cpu_ns(b->sense) < 10 * S_NS);
}

static void processes_have_names_and_one_row(void **state)
{
        struct bench *b = *state;
        start(b, ONE_GPU);
        read_fresh(b);
        assert_int_equal(count_kind(b, AFZ_KIND_GPU_PROC), 5);
        const struct afz_sample *p = find(b, AFZ_KIND_GPU_PROC, 101);
        assert_string_equal(p->name, "python3");
        expect(p, AFZ_GPU_PROC_PID, 101);
        expect(p, AFZ_GPU_PROC_GPU, 0);
        expect(p, AFZ_GPU_PROC_MEM, 1000); /* in two lists, counted once */
        expect_absent(p, AFZ_GPU_PROC_IN_JOB);
        assert_string_equal(find(b, AFZ_KIND_GPU_PROC, 102)->name, "a) Z?b");
        expect_absent(find(b, AFZ_KIND_GPU_PROC, 103), AFZ_GPU_PROC_MEM); /* -1 is not a size */
        assert_string_equal(find(b, AFZ_KIND_GPU_PROC, 103)->name, "?");
        expect(find(b, AFZ_KIND_GPU_PROC, 105), AFZ_GPU_PROC_MEM, 600);
}

static void every_generation_of_the_library(void **state)
{
        static const struct {
                const char *variant;
                bool v2_memory;
        } rows[] = {{"now", true}, {"v2", true}, {"v1", false}, {"535", true}};
        struct bench *b = *state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                use_library(rows[i].variant);
                start(b, ONE_GPU);
                read_fresh(b);
                const struct afz_sample *gpu = find(b, AFZ_KIND_GPU, 0);
                expect(gpu, AFZ_GPU_MEM_TOTAL, 1000000);
                expect(gpu, AFZ_GPU_MEM_USED, rows[i].v2_memory ? 300000 : 400000);
                if (!rows[i].v2_memory)
                        expect_absent(gpu, AFZ_GPU_MEM_RESERVED);
                expect(gpu, AFZ_GPU_THROTTLE, 1);
                assert_int_equal(count_kind(b, AFZ_KIND_GPU_PROC), 5);
                expect(find(b, AFZ_KIND_GPU_PROC, 101), AFZ_GPU_PROC_MEM, 1000);
                expect(find(b, AFZ_KIND_GPU_PROC, 102), AFZ_GPU_PROC_MEM, 2000);
                expect(find(b, AFZ_KIND_GPU_PROC, 104), AFZ_GPU_PROC_MEM, 500);
                afz_sense_gpu.close(b->sense);
                b->sense = NULL;
        }
}

static void missing_functions_are_absent_values(void **state)
{
        struct bench *b = *state;
        use_library("bare");
        start(b, ONE_GPU);
        read_fresh(b);
        const struct afz_sample *gpu = find(b, AFZ_KIND_GPU, 0);
        assert_string_equal(gpu->name, "NVIDIA H200");
        assert_string_equal(gpu->detail ? gpu->detail : "none", "none");
        expect(gpu, AFZ_GPU_MEM_USED, 400000);
        assert_int_equal(__builtin_popcountll(gpu->present), 4); /* total, used, free, unified */
        assert_int_equal(count_kind(b, AFZ_KIND_GPU_PROC), 0);
}

static void memory_of_the_machine(void **state)
{
        struct bench *b = *state;
        start(b, "gpu 0 name NVIDIA GB10\ngpu 0 util 5 0\nproc 0 9 77\n");
        read_fresh(b);
        const struct afz_sample *gpu = find(b, AFZ_KIND_GPU, 0);
        expect(gpu, AFZ_GPU_UNIFIED, 1);
        expect_absent(gpu, AFZ_GPU_MEM_TOTAL);
        expect_absent(gpu, AFZ_GPU_MEM_USED);
        expect(gpu, AFZ_GPU_UTIL, 500);
        expect(find(b, AFZ_KIND_GPU_PROC, 9), AFZ_GPU_PROC_MEM, 77);
}

static void instances_are_subjects_of_their_own(void **state)
{
        struct bench *b = *state;
        start(b, "gpu 0 name A100\ngpu 0 mem 80 20 60 0\ngpu 1 name A100\ngpu 1 mem 80 1 79 0\n"
                 "gpu 2 name A100 MIG 1g\ngpu 2 uuid MIG-2\ngpu 2 parent 0\ngpu 2 mem 10 4 6 0\n"
                 "gpu 3 name A100 MIG 2g\ngpu 3 uuid MIG-3\ngpu 3 parent 0\ngpu 3 mem 20 5 15 0\n"
                 "proc 0 50 4\nproc 2 50 4\nproc 3 51 5\nproc 1 52 1\n");
        read_fresh(b);
        assert_int_equal(count_kind(b, AFZ_KIND_GPU), 4);
        expect(find(b, AFZ_KIND_GPU, 2), AFZ_GPU_PARENT, 0);
        expect(find(b, AFZ_KIND_GPU, 2), AFZ_GPU_MEM_USED, 4);
        expect(find(b, AFZ_KIND_GPU, 3), AFZ_GPU_PARENT, 0);
        expect_absent(find(b, AFZ_KIND_GPU, 1), AFZ_GPU_PARENT);
        /* The GPU lists its instances' processes again: they are counted where they are. */
        assert_int_equal(count_kind(b, AFZ_KIND_GPU_PROC), 3);
        expect(find(b, AFZ_KIND_GPU_PROC, UINT64_C(2) << 32 | 50), AFZ_GPU_PROC_MEM, 4);
        expect(find(b, AFZ_KIND_GPU_PROC, UINT64_C(1) << 32 | 52), AFZ_GPU_PROC_GPU, 1);
}

static void more_than_there_is_room_for(void **state)
{
        struct bench *b = *state;
        char *text = malloc(1 << 20);
        size_t at = 0;
        for (int i = 0; i < 70; i++)
                at += (size_t)sprintf(text + at, "gpu %d name G\n", i);
        for (int i = 0; i < 300; i++)
                at += (size_t)sprintf(text + at, "proc 0 %d 1\n", 1000 + i);
        start(b, text);
        free(text);
        read_fresh(b);
        assert_int_equal(count_kind(b, AFZ_KIND_GPU), AFZ_GPU_MAX);
        assert_int_equal(count_kind(b, AFZ_KIND_GPU_PROC), AFZ_GPU_PROC_MAX);
        assert_int_equal(b->batch->dropped, 300 - AFZ_GPU_PROC_MAX);
}

static void open_recording(struct bench *b, const char *name)
{
        const char *dir = getenv("AFZ_FIXTURES");
        assert_non_null(dir);
        char path[512];
        snprintf(path, sizeof path, "%s/%s/nvml.txt", dir, name);
        assert_int_equal(access(path, R_OK), 0);
        setenv("FAKE_NVML_FILE", path, 1);
        assert_int_equal(open_sense(b), 0);
        read_fresh(b);
}

static void recordings_of_real_machines(void **state)
{
        static const struct {
                const char *name;
                size_t gpus;
        } rows[] = {{"h200", 1}, {"h200x8", 8}};
        struct bench *b = *state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                open_recording(b, rows[i].name);
                assert_int_equal(count_kind(b, AFZ_KIND_GPU), rows[i].gpus);
                for (uint64_t g = 0; g < rows[i].gpus; g++) {
                        assert_string_equal(find(b, AFZ_KIND_GPU, g)->name, "NVIDIA H200");
                        expect(find(b, AFZ_KIND_GPU, g), AFZ_GPU_MEM_TOTAL, 150754820096);
                }
                afz_sense_gpu.close(b->sense);
                b->sense = NULL;
        }
}

static void a_dump_can_be_read_again(void **state)
{
        struct bench *b = *state;
        static char first[8192], second[8192];
        char *buf[] = {first, second};
        start(b, ONE_GPU "gpu 1 name part\ngpu 1 parent 0\ngpu 1 mem 5 1 4 0\nproc 1 9 1\n");
        for (int i = 0; i < 2; i++) {
                if (i == 1)
                        start(b, first);
                read_fresh(b);
                struct afz_out out = afz_out_to(-1, buf[i], sizeof first - 1);
                assert_int_equal(afz_gpu_dump(b->sense, &out), 0);
                assert_int_equal(out.err, 0);
                afz_sense_gpu.close(b->sense);
                b->sense = NULL;
        }
        assert_string_equal(first, second);
        assert_non_null(strstr(first, "gpu 0 mem 1000000 300000 600000 100000\n"));
        assert_non_null(strstr(first, "uuid GPU-00000000-")); /* the real one is masked */
        assert_null(strstr(first, "GPU-1\n"));
        assert_int_equal(afz_gpu_dump(NULL, NULL), -ENODATA);
}

/* ---- events ---- */

static void a_lost_gpu_is_an_event(void **state)
{
        struct bench *b = *state;
        start(b, "gpu 0 name A\ngpu 0 mem 9 1 8 0\ngpu 1 name B\ngpu 1 mem 9 2 7 0\n");
        read_fresh(b);
        assert_int_equal(b->batch->events, 0);
        say(b, "gpu 0 name A\ngpu 0 mem 9 3 6 0\ngpu 1 name B\ngpu 1 mem 9 2 7 0\ngpu 1 lost\n");
        read_fresh(b);
        assert_int_equal(b->batch->events, 1);
        assert_int_equal(event_of(b, AFZ_EVENT_GPU_LOST)->code, 1);
        assert_string_equal(event_of(b, AFZ_EVENT_GPU_LOST)->text, "GPU 1 (B) is lost");
        assert_int_equal(find(b, AFZ_KIND_GPU, 1)->present, 0);
        expect(find(b, AFZ_KIND_GPU, 0), AFZ_GPU_MEM_USED, 3);
        read_fresh(b);
        assert_int_equal(b->batch->events, 0);
}

static void an_xid_is_an_event(void **state)
{
        struct bench *b = *state;
        start(b, "gpu 0 name A\n");
        read_fresh(b);
        say(b, "gpu 0 name A\ngpu 0 xid 79\n");
        read_fresh(b);
        assert_int_equal(event_of(b, AFZ_EVENT_XID)->code, 79);
        assert_string_equal(event_of(b, AFZ_EVENT_XID)->text, "GPU 0 (A): Xid 79");
        expect(find(b, AFZ_KIND_GPU, 0), AFZ_GPU_XID, 79);
        read_fresh(b);
        assert_int_equal(b->batch->events, 0);
        expect(find(b, AFZ_KIND_GPU, 0), AFZ_GPU_XID, 79); /* the last one stands */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST_(one_gpu_tells_everything),
                TEST_(values_follow_the_driver),
                TEST_(processes_have_names_and_one_row),
                TEST_(every_generation_of_the_library),
                TEST_(missing_functions_are_absent_values),
                TEST_(memory_of_the_machine),
                TEST_(instances_are_subjects_of_their_own),
                TEST_(more_than_there_is_room_for),
                TEST_(recordings_of_real_machines),
                TEST_(a_dump_can_be_read_again),
                TEST_(a_lost_gpu_is_an_event),
                TEST_(an_xid_is_an_event),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
