/* links: probe/refuse.c, with stacks and libraries that stand here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "module.h"
#include "probe.h"

/* A frame is a library's number and a function's: 0xLLFF. */
static const char *const libraries[] = {
        "/usr/lib/libfoo.so",
        "/usr/lib/libstdc++.so.6",
        "/env/numpy.libs/libscipy_openblas64_-32a4.so",
        "/env/tensorflow/libtensorflow_framework.so.2",
        "/env/tensorflow/libtensorflow_cc.so.2",
        "/env/torch/lib/libc10.so",
        "/env/torch/lib/libtorch_cpu.so",
        "/env/numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so",
        "/env/polars/polars.abi3.so",
        "", /* the program itself */
        "/libc10.so/libfoo.so",
};
enum { FOO, STDCXX, BLAS, FRAMEWORK, TF, C10, TORCH, NUMPY, POLARS, PROGRAM, FOLDER };

static const char *const functions[] = {
        NULL,
        "_ZN10tensorflow8MatMulOpI7ComputeE",
        "_ZN10tensorflow16MklFusedMatMulOpI7ComputeE",
        "_ZN10tensorflow7grappler15ConstantFolding",
};
enum { NAMELESS, MATMUL, MKL, FOLDS };

#define AT(library, function) (UINT64_C(0x10000) + (library)*0x100 + (function)*0x10 + 1)
#define PY                    (AFZ_FRAME_PYTHON | 5)

static struct {
        struct afz_stack stack;
        int python;
} now;

int afz_stack_has_python(struct afz_book *book)
{
        (void)book;
        return now.python;
}

void afz_stack_take(struct afz_book *book, enum afz_site_kind kind, struct afz_stack *ret)
{
        (void)book;
        (void)kind;
        *ret = now.stack;
}

int afz_module_find(struct afz_book *book, uint64_t pc, struct afz_module *ret)
{
        (void)book;
        if (pc < 0x10000 || (pc - 0x10000) / 0x100 >= sizeof libraries / sizeof *libraries)
                return -1;
        ret->path = libraries[(pc - 0x10000) / 0x100];
        return 0;
}

const char *afz_module_function(const struct afz_module *module, uint64_t pc)
{
        assert_ptr_equal(module->path, libraries[(pc - 0x10000) / 0x100]);
        return functions[pc % 0x100 / 0x10];
}

static void test_who(void **state)
{
        static const struct {
                int python, armed;
                enum afz_ask how;
                int frames;
                uint64_t frame[5];
                int may;
        } row[] = {
                /* Nobody would hear it. */
                {0, 0, AFZ_ASK_PLAIN, 1, {AT(NUMPY, 0)}, 0},
                {0, 0, AFZ_ASK_ALIGNED, 1, {AT(C10, 0)}, 0},
                {0, 1, AFZ_ASK_PLAIN, 1, {AT(NUMPY, 0)}, 0},
                /* Those who look at the answer. */
                {1, 0, AFZ_ASK_PLAIN, 1, {PY}, 1},
                {1, 0, AFZ_ASK_ALIGNED, 1, {PY}, 1},
                {1, 0, AFZ_ASK_PLAIN, 2, {AT(NUMPY, 0), PY}, 1},
                {1, 0, AFZ_ASK_ALIGNED, 3, {AT(C10, 0), AT(TORCH, 0), PY}, 1},
                {1, 0, AFZ_ASK_ALIGNED, 3, {AT(C10, 0), AT(FOO, 0), PY}, 1},
                {0, 1, AFZ_ASK_ALIGNED, 2, {AT(C10, 0), AT(TORCH, 0)}, 1},
                /* Everybody else. */
                {1, 0, AFZ_ASK_PLAIN, 2, {AT(FOO, 0), PY}, 0},
                {1, 0, AFZ_ASK_ALIGNED, 2, {AT(FOO, 0), PY}, 0},
                {1, 0, AFZ_ASK_PLAIN, 3, {AT(FOO, 0), AT(NUMPY, 0), PY}, 0},
                {1, 0, AFZ_ASK_PLAIN, 3, {AT(BLAS, 0), AT(NUMPY, 0), PY}, 0},
                {1, 0, AFZ_ASK_PLAIN, 2, {AT(POLARS, 0), PY}, 0},
                {1, 0, AFZ_ASK_PLAIN, 2, {AT(C10, 0), PY}, 0},
                {1, 0, AFZ_ASK_ALIGNED, 2, {AT(TORCH, 0), PY}, 0},
                {1, 0, AFZ_ASK_PLAIN, 2, {AT(PROGRAM, 0), PY}, 0},
                {1, 0, AFZ_ASK_ALIGNED, 2, {AT(FOLDER, 0), PY}, 0}, /* the file's name counts */
                /* C++'s new, with an alignment or without. */
                {1, 0, AFZ_ASK_PLAIN, 3, {AT(STDCXX, 0), AT(NUMPY, 0), PY}, 0},
                {0, 1, AFZ_ASK_ALIGNED, 2, {AT(STDCXX, 0), AT(C10, 0)}, 0},
                {0, 1, AFZ_ASK_ALIGNED, 2, {AT(STDCXX, 0), AT(FRAMEWORK, 0)}, 0},
                /* Not known who. */
                {1, 0, AFZ_ASK_PLAIN, 0, {0}, 0}, /* no stack to be had */
                {1, 0, AFZ_ASK_PLAIN, -1, {0}, 0},
                {1, 0, AFZ_ASK_PLAIN, 1, {77}, 0}, /* in no library */
                {0, 1, AFZ_ASK_ALIGNED, 2, {77, AT(C10, 0)}, 0},
                /* TensorFlow: tensors, but not oneDNN's. */
                {1, 1, AFZ_ASK_PLAIN, 2, {AT(TF, MATMUL), PY}, 0},
                {0, 1, AFZ_ASK_ALIGNED, 3, {AT(FRAMEWORK, 0), AT(TF, MATMUL), AT(TF, 0)}, 1},
                {0, 1, AFZ_ASK_ALIGNED, 3, {AT(FRAMEWORK, 0), AT(TF, MKL), AT(TF, 0)}, 0},
                {0, 1, AFZ_ASK_ALIGNED, 3, {AT(FRAMEWORK, 0), AT(TF, 0), AT(TF, FOLDS)}, 0},
                {1, 1, AFZ_ASK_ALIGNED, 4, {AT(FRAMEWORK, 0), AT(FOO, 0), AT(TF, MKL), PY}, 0},
                {0, 1, AFZ_ASK_ALIGNED, 3, {AT(FRAMEWORK, 0), AT(FOO, MKL), AT(TF, 0)}, 1},
                {1, 0, AFZ_ASK_ALIGNED, 3, {AT(C10, 0), AT(TF, MKL), PY}, 1},
        };
        static struct afz_book book;
        (void)state;
        for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
                now.python = row[i].python;
                now.stack = (struct afz_stack){.frames = row[i].frames};
                memcpy(now.stack.frame, row[i].frame, sizeof row[i].frame);
                if (afz_refuse_may(&book, row[i].armed, row[i].how) != row[i].may)
                        fail_msg("row %u: not %d", i, row[i].may);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_who),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
