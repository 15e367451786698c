/* Whose code a frame is, by its path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "user_frame.h"

static void test_python(void **state)
{
        static const struct {
                const char *file;
                enum afz_frame_owner owner;
        } cases[] = {
                {"/home/me/train.py", AFZ_FRAME_OF_USER},
                {"train.py", AFZ_FRAME_OF_USER},
                {"<stdin>", AFZ_FRAME_OF_USER},
                {"<string>", AFZ_FRAME_OF_USER},
                {"/tmp/ipykernel_4242/12345.py", AFZ_FRAME_OF_USER},
                {"/home/me/lib/python/train.py", AFZ_FRAME_OF_USER},
                {"/home/me/lib/python3/train.py", AFZ_FRAME_OF_USER},
                {"/home/me/venv/project/train.py", AFZ_FRAME_OF_USER},
                {"/home/me/.venv/src/mine/model.py", AFZ_FRAME_OF_USER}, /* pip install -e */
                {"/home/me/src/transformers/trainer.py", AFZ_FRAME_OF_USER},
                {"/home/me/app.pyz/__main__.py", AFZ_FRAME_OF_USER},
                {"/home/me/bin/train", AFZ_FRAME_OF_USER},
                {"/opt/me/train.py", AFZ_FRAME_OF_USER},
                {"<ipython-input-3-0123456789ab>", AFZ_FRAME_OF_USER},
                {"<doctest mine.load[3]>", AFZ_FRAME_OF_USER},
                {"/home/me/.venv/bin/torchrun", AFZ_FRAME_OF_LIBRARY},
                {"/opt/conda/envs/x/bin/accelerate", AFZ_FRAME_OF_LIBRARY},
                {"/usr/local/bin/pytest", AFZ_FRAME_OF_LIBRARY},
                {"/usr/local/share/antifreeze/python/antifreeze/on_torch.py", AFZ_FRAME_OF_LIBRARY},
                {"/opt/conda/envs/x/lib/python3.10/site-packages/keras/src/layers/layer.py",
                 AFZ_FRAME_OF_LIBRARY},
                {"/usr/local/lib/python3.11/dist-packages/torch/optim/adam.py",
                 AFZ_FRAME_OF_LIBRARY},
                {"/usr/lib/python3.13t/json/decoder.py", AFZ_FRAME_OF_LIBRARY},
                {"/usr/lib/pypy3.10/json/decoder.py", AFZ_FRAME_OF_LIBRARY},
                {"/usr/lib/python311.zip/json/decoder.py", AFZ_FRAME_OF_LIBRARY},
                {"/usr/lib/python3.9/runpy.py", AFZ_FRAME_OF_LIBRARY},
                {"/tmp/torchinductor_me/ab/cabcd.py", AFZ_FRAME_OF_LIBRARY},
                {"/tmp/__autograph_generated_filexyz.py", AFZ_FRAME_OF_LIBRARY},
                {"<decorator-gen-57>", AFZ_FRAME_OF_LIBRARY},
                {"<eval_with_key>.3", AFZ_FRAME_OF_LIBRARY},
                {"<frozen runpy>", AFZ_FRAME_OF_RUNTIME},
                {"/usr/lib/python3/dist-packages/numpy/core/numeric.py", AFZ_FRAME_OF_LIBRARY},
                {"/home/me/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py",
                 AFZ_FRAME_OF_LIBRARY},
                {"/opt/conda/lib/python3.12/json/decoder.py", AFZ_FRAME_OF_LIBRARY},
                {"/usr/lib64/python3.9/threading.py", AFZ_FRAME_OF_LIBRARY},
                {"<frozen importlib._bootstrap>", AFZ_FRAME_OF_RUNTIME},
                {"<__array_function__ internals>", AFZ_FRAME_OF_LIBRARY},
                {"?", AFZ_FRAME_OF_RUNTIME},
                {"", AFZ_FRAME_OF_RUNTIME},
        };
        (void)state;
        for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
                if (afz_frame_owner_python(cases[i].file) != cases[i].owner)
                        fail_msg("%s", cases[i].file);
}

static void test_package(void **state)
{
        static const struct {
                const char *file;
                size_t length;
        } cases[] = {
                {"/v/lib/python3.11/site-packages/mine/train.py",
                 sizeof "/v/lib/python3.11/site-packages/mine/" - 1},
                {"/usr/lib/python3/dist-packages/mine/a/b.py",
                 sizeof "/usr/lib/python3/dist-packages/mine/" - 1},
                {"/v/lib/python3.11/site-packages/six.py", 0}, /* one file is no package */
                {"/home/me/train.py", 0},
                {"", 0},
        };
        (void)state;
        for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
                assert_int_equal(afz_frame_package(cases[i].file), cases[i].length);
}

static void test_native(void **state)
{
        static const struct {
                const char *module, *source, *function;
                enum afz_frame_owner owner;
        } cases[] = {
                {"/home/me/trainer", "/home/me/load.c", "f", AFZ_FRAME_OF_USER},
                {"/home/me/trainer", "", "f", AFZ_FRAME_OF_USER},
                {"/home/me/trainer", "", "", AFZ_FRAME_OF_USER},
                {"/home/me/trainer", "", "mine::std::load()", AFZ_FRAME_OF_USER},
                {"/home/me/trainer", "", "std::vector<int>::reserve(unsigned long)",
                 AFZ_FRAME_OF_LIBRARY},
                {"/home/me/trainer", "", "void std::vector<int>::_M_fill()", AFZ_FRAME_OF_LIBRARY},
                {"/bin/bash", "", "xmalloc", AFZ_FRAME_OF_LIBRARY},
                {"/home/me/build/libmine.so", "", "f", AFZ_FRAME_OF_USER},
                {"/usr/local/bin/trainer", "", "f", AFZ_FRAME_OF_USER},
                {"/opt/me/trainer", "", "f", AFZ_FRAME_OF_USER},
                {"/home/me/trainer", "/usr/include/c++/12/bits/new_allocator.h", "f",
                 AFZ_FRAME_OF_LIBRARY},
                {"/home/me/trainer", "/opt/gcc/include/c++/13/vector", "f", AFZ_FRAME_OF_LIBRARY},
                {"/usr/lib/x86_64-linux-gnu/libblas.so.3", "", "f", AFZ_FRAME_OF_LIBRARY},
                {"/opt/cuda/lib64/libcudart.so.12", "", "f", AFZ_FRAME_OF_LIBRARY},
                {"/home/me/.venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so", "", "f",
                 AFZ_FRAME_OF_LIBRARY},
                {"/lib/x86_64-linux-gnu/libc.so.6", "", "f", AFZ_FRAME_OF_RUNTIME},
                {"/usr/lib/x86_64-linux-gnu/libc-2.31.so", "", "f", AFZ_FRAME_OF_RUNTIME},
                {"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "", "f", AFZ_FRAME_OF_RUNTIME},
                {"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "", "f", AFZ_FRAME_OF_RUNTIME},
                {"/opt/conda/lib/libpython3.11.so.1.0", "", "f", AFZ_FRAME_OF_RUNTIME},
                {"/usr/bin/python3.11", "", "f", AFZ_FRAME_OF_RUNTIME},
                {"/home/me/.venv/bin/python", "", "f", AFZ_FRAME_OF_RUNTIME},
                {"/home/me/pythonic", "", "f", AFZ_FRAME_OF_USER},
                {"[vdso]", "", "f", AFZ_FRAME_OF_RUNTIME},
                {"", "", "f", AFZ_FRAME_OF_RUNTIME},
        };
        (void)state;
        for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
                if (afz_frame_owner_native(cases[i].module, cases[i].source, cases[i].function) !=
                    cases[i].owner)
                        fail_msg("%s %s %s", cases[i].module, cases[i].source, cases[i].function);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_python),
                cmocka_unit_test(test_package),
                cmocka_unit_test(test_native),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
