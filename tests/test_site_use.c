/* What a line allocates for, by the names in its stack. */
#include "judge_fixture.h"
#include "site_use.h"

static enum afz_site_use use_of(const char *line, const char *stack)
{
        fly_named(&flight, AFZ_KIND_SITE, 7, line, NULL, NULL);
        fly_mark(&flight, 1, AFZ_MARK_SITE, 7, stack);
        return afz_site_use_of(&flight, afz_flight_find(&flight, AFZ_KIND_SITE, 7));
}

struct row {
        const char *line, *stack;
        enum afz_site_use use;
};

static void try_rows(const struct row *rows, unsigned n)
{
        for (unsigned i = 0; i < n; i++) {
                afz_flight_done(&flight);
                afz_flight_init(&flight);
                enum afz_site_use use = use_of(rows[i].line, rows[i].stack);
                if (use != rows[i].use)
                        fail_msg("row %u, %s: %d, not %d", i, rows[i].stack, use, rows[i].use);
        }
}

static void stacks(void **state)
{
        (void)state;
        static const struct row rows[] = {
                {"a.py:1", "a.py:1", AFZ_USE_OTHER},
                {"a.py:1", "", AFZ_USE_OTHER},
                {"a.py:1", "\n\na.py:1", AFZ_USE_OTHER},
                {"a.py:1 in load()", "a.py:1 in load()", AFZ_USE_DATA},
                {"a.py:1", "python3.11/csv.py:4 in next()\na.py:1", AFZ_USE_DATA},
                {"csv.py:1", "csv.py:1", AFZ_USE_OTHER}, /* the user's own */
                {"a.py:1", "nocsv.py:4\na.py:1", AFZ_USE_OTHER},
                {"a.py:1", "numpy/lib/_npyio_impl.py:4 in load()\na.py:1", AFZ_USE_DATA},
                {"a.py:1",
                 "constant_op.py:2 in "
                 "constant()\ntensorflow/python/data/ops/from_tensor_slices_op.py:33 in "
                 "_TensorSliceDataset.__init__()\na.py:1",
                 AFZ_USE_DATA},
                {"a.py:1 in Faces.__init__()", "a.py:1 in Faces.__init__()", AFZ_USE_OTHER},
                {"a.py:1 in FaceData.__init__()", "a.py:1 in FaceData.__init__()", AFZ_USE_DATA},
                /* parameters */
                {"a.py:1",
                 "at::empty() in libtorch_cpu.so\ntorch/nn/modules/linear.py:109 in "
                 "Linear.__init__()\na.py:1",
                 AFZ_USE_MODEL},
                {"a.py:1 in Net.__init__()",
                 "torch/nn/modules/linear.py:109 in __init__()\na.py:1 in Net.__init__()",
                 AFZ_USE_MODEL},
                {"a.py:1",
                 "torch/optim/adam.py:150 in Adam._init_group()\ntorch/optim/optimizer.py:9 in "
                 "step()\na.py:1",
                 AFZ_USE_MODEL},
                {"a.py:1",
                 "keras/src/layers/core/dense.py:136 in Dense.build()\nkeras/src/layers/layer.py:6 "
                 "in Layer.add_weight()\na.py:1",
                 AFZ_USE_MODEL},
                /* of a layer */
                {"a.py:8 in LeakyLayer.__init__()",
                 "at::rand() in libtorch_cpu.so\na.py:8 in LeakyLayer.__init__()\na.py:11",
                 AFZ_USE_LAYER},
                {"a.py:8 in __init__()", "a.py:8 in __init__()\na.py:20 in __init__()",
                 AFZ_USE_LAYER},
                {"a.py:8 in __init__()", "a.py:8 in __init__()\na.py:20 in main()", AFZ_USE_OTHER},
                {"net.c:15 in floats_new()",
                 "net.c:15 in floats_new()\nnet.c:64 in add_leaky_layers()\nmain.c:3 in main()",
                 AFZ_USE_LAYER},
                /* of a step */
                {"a.py:5 in Net.forward()",
                 "torch/nn/functional.py:17 in relu()\na.py:5 in Net.forward()", AFZ_USE_STEP},
                {"a.py:9",
                 "torch/nn/modules/linear.py:134 in "
                 "Linear.forward()\ntorch/nn/modules/module.py:1790 in "
                 "Module._call_impl()\na.py:9",
                 AFZ_USE_STEP},
                {"net.c:15 in floats_new()",
                 "net.c:15 in floats_new()\nnet.c:90 in pass_init()\ntrainer.c:7 in train_step()",
                 AFZ_USE_STEP},
                /* code */
                {"a.py:2",
                 "<frozen importlib._bootstrap>:241 in _call()\ntorch/__init__.py:4\n<frozen "
                 "importlib._bootstrap>:1176 in _find_and_load()\na.py:2",
                 AFZ_USE_IMPORT},
                {"a.py:2",
                 "torch/nn/functional.py:8\n<frozen importlib._bootstrap>:1176 in _find()\na.py:2",
                 AFZ_USE_IMPORT},
                /* a module of the user's that loads as it is imported */
                {"mine.py:2", "mine.py:2\n<frozen importlib._bootstrap>:241 in _call()\na.py:2",
                 AFZ_USE_OTHER},
                /* hostile */
                {": in ()", ": in ()\n in \n:1\n+0x\n12", AFZ_USE_OTHER},
        };
        try_rows(rows, AFZ_COUNT_OF(rows));
}

/* TensorFlow computes a tensor for whatever it is. */
static void tensors_of_tensorflow(void **state)
{
        (void)state;
        static const struct row rows[] = {
                {"a.py:8 in Noisy.__init__()",
                 "tensorflow::ThreadPoolDevice::Compute() in libtf.so\na.py:8 in "
                 "Noisy.__init__()\na.py:16",
                 AFZ_USE_LAYER},
                {"a.py:8 in Faces.__init__()",
                 "tensorflow::ThreadPoolDevice::Compute() in libtf.so\na.py:8 in "
                 "Faces.__init__()\na.py:16 in load()",
                 AFZ_USE_DATA},
                {"a.py:8",
                 "tensorflow::ThreadPoolDevice::Compute() in libtf.so\n"
                 "keras/src/layers/layer.py:6 in Layer.add_weight()\na.py:8",
                 AFZ_USE_MODEL},
                {"a.py:8", "tensorflow::ThreadPoolDevice::Compute() in libtf.so\na.py:8",
                 AFZ_USE_RESULT},
                {"a.py:8",
                 "tensorflow::ThreadPoolDevice::Compute() in libtf.so\n"
                 "tensorflow/python/eager/backprop.py:1066 in GradientTape.gradient()\na.py:8",
                 AFZ_USE_STEP},
        };
        try_rows(rows, AFZ_COUNT_OF(rows));
}

/* A line of an __init__ that made many large tensors of torch: layers, whatever they are called. */
static void tensors_of_torch(void **state)
{
        (void)state;
        static const char *const stack =
                "c10::alloc_cpu() in libc10.so\nat::native::rand() in libtorch_cpu.so\n"
                "a.py:8 in Biased.__init__()\na.py:16 in <listcomp>()\na.py:16";
        static const struct {
                double mega;
                int64_t blocks;
                enum afz_site_use use;
        } rows[] = {
                {488, 8, AFZ_USE_LAYER},
                {488, 3, AFZ_USE_OTHER},   /* to learn, to try, to test */
                {488, 400, AFZ_USE_OTHER}, /* samples */
        };
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                afz_flight_done(&flight);
                afz_flight_init(&flight);
                fly_named(&flight, AFZ_KIND_SITE, 7, "a.py:8 in Biased.__init__()", NULL, NULL);
                fly_point(&flight, AFZ_KIND_SITE, 7, AFZ_SITE_LIVE, 1, FLY_MB(rows[i].mega));
                fly_point(&flight, AFZ_KIND_SITE, 7, AFZ_SITE_BLOCKS, 1, rows[i].blocks);
                assert_int_equal(use_of("a.py:8 in Biased.__init__()", stack), rows[i].use);
        }
}

/* Small stacks are added up by their line, those of what it imports apart from its own. */
static void sums(void **state)
{
        (void)state;
        assert_int_equal(use_of("a.py:2", "a.py:2"), AFZ_USE_OTHER);
        assert_int_equal(use_of("a.py:2", "<frozen importlib._bootstrap>:1176 in _find()\na.py:2"),
                         AFZ_USE_IMPORT);
        assert_int_equal(use_of("imports of modules", ""), AFZ_USE_IMPORT);
        fly_named(&flight, AFZ_KIND_SITE, 8, "a.py:4", NULL, NULL);
        fly_mark(&flight, 1, AFZ_MARK_SITE, 8, "torch/_tensor.py:8 in backward()\na.py:4");
        assert_int_equal(use_of("a.py:4", "a.py:4"), AFZ_USE_STEP);
}

static void long_lines(void **state)
{
        (void)state;
        char text[4000];
        memset(text, 'x', sizeof text - 1);
        text[sizeof text - 1] = '\0';
        assert_int_equal(use_of("a.py:1", text), AFZ_USE_OTHER);
        memcpy(text + 100, ":7 in ", 6);
        assert_int_equal(use_of("a.py:1", text), AFZ_USE_OTHER);
}

int main(void)
{
        const struct CMUnitTest tests[] = {TEST(stacks), TEST(tensors_of_tensorflow),
                                           TEST(tensors_of_torch), TEST(sums), TEST(long_lines)};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
