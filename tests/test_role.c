/* links: model */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "role.h"

#define TEXT(literal)                                                                              \
        {                                                                                          \
                (literal), sizeof(literal) - 1                                                     \
        }

/* One row a process; words end in a NUL, and the literal's own ends the last. */
#define ARGS(literal)                                                                              \
        {                                                                                          \
                (literal), sizeof(literal)                                                         \
        }
#define NOTHING                                                                                    \
        {                                                                                          \
                NULL, 0                                                                            \
        }

struct role_case {
        const char *what;
        struct afz_role_clues clues;
        enum afz_role role;
        int64_t rank;
};

static const struct role_case cases[] = {
        {"a script", {.cmdline = ARGS("python3\0train.py"), .is_root = 1}, AFZ_ROLE_MAIN, -1},
        {"a C program",
         {.cmdline = ARGS("./trainer\0--epochs\0"
                          "3"),
          .is_root = 1},
         AFZ_ROLE_MAIN,
         -1},
        {"a shell", {.cmdline = ARGS("/bin/bash\0run.sh"), .is_root = 1}, AFZ_ROLE_SHELL, -1},
        {"the trainer below a shell",
         {.cmdline = ARGS("python\0train.py"),
          .parent_cmdline = ARGS("bash\0run.sh"),
          .parent_role = AFZ_ROLE_SHELL},
         AFZ_ROLE_MAIN,
         -1},
        {"torchrun",
         {.cmdline = ARGS("/usr/bin/python3.11\0/usr/local/bin/torchrun\0t.py"), .is_root = 1},
         AFZ_ROLE_LAUNCHER,
         -1},
        {"torchrun as a module",
         {.cmdline = ARGS("python\0-u\0-m\0torch.distributed.run\0t.py"), .is_root = 1},
         AFZ_ROLE_LAUNCHER,
         -1},
        {"a rank below it",
         {.cmdline = ARGS("python\0-u\0t.py"),
          .environ = ARGS("PATH=/bin\0XRANK=9\0RANK=3\0LOCAL_RANK=1"),
          .parent_role = AFZ_ROLE_LAUNCHER},
         AFZ_ROLE_RANK,
         3},
        {"a forked worker",
         {.cmdline = ARGS("python3\0train.py"),
          .parent_cmdline = ARGS("python3\0train.py"),
          .parent_role = AFZ_ROLE_MAIN},
         AFZ_ROLE_WORKER,
         -1},
        {"a worker of a rank keeps its rank",
         {.cmdline = ARGS("python3\0train.py"),
          .environ = ARGS("RANK=2"),
          .parent_cmdline = ARGS("python3\0train.py"),
          .parent_role = AFZ_ROLE_RANK},
         AFZ_ROLE_WORKER,
         2},
        {"a spawned worker",
         {.cmdline = ARGS("python3\0-c\0from multiprocessing.spawn import spawn_main; "
                          "x\0--multiprocessing-fork"),
          .parent_role = AFZ_ROLE_MAIN},
         AFZ_ROLE_WORKER,
         -1},
        {"the resource tracker",
         {.cmdline = ARGS(
                  "python3\0-B\0-c\0from multiprocessing.resource_tracker import main;main(5)")},
         AFZ_ROLE_TRACKER,
         -1},
        {"a worker by its name",
         {.comm = TEXT("pt_data_worker"),
          .cmdline = ARGS("whatever"),
          .parent_role = AFZ_ROLE_MAIN},
         AFZ_ROLE_WORKER,
         -1},
        {"a notebook's kernel",
         {.cmdline = ARGS("python\0-Xfrozen_modules=off\0-m\0ipykernel_launcher\0-f\0k.json"),
          .parent_role = AFZ_ROLE_SERVER},
         AFZ_ROLE_KERNEL,
         -1},
        {"its server",
         {.cmdline = ARGS("/usr/bin/python3\0/usr/bin/jupyter-lab")},
         AFZ_ROLE_SERVER,
         -1},
        {"its server as a module",
         {.cmdline = ARGS("v/bin/python\0-m\0jupyterlab\0--no-browser")},
         AFZ_ROLE_SERVER,
         -1},
        {"a kernel of an editor",
         {.cmdline = ARGS("/v/bin/python\0-m\0ipykernel_launcher\0--f=/run/kernel-v3a1b2.json"),
          .parent_role = AFZ_ROLE_SERVER},
         AFZ_ROLE_KERNEL,
         -1},
        {"a kernel of another language",
         {.cmdline = ARGS("R\0--slave\0-e\0IRkernel::main()\0--args\0/r/kernel-4e4d5152.json"),
          .parent_role = AFZ_ROLE_SERVER},
         AFZ_ROLE_KERNEL,
         -1},
        {"what has such a file and no server above",
         {.cmdline = ARGS("less\0/r/kernel-4e4d5152.json"), .parent_role = AFZ_ROLE_SHELL},
         AFZ_ROLE_MAIN,
         -1},
        {"a worker that a kernel has forked",
         {.cmdline = ARGS("python\0-m\0ipykernel_launcher\0-f\0k.json"),
          .parent_cmdline = ARGS("python\0-m\0ipykernel_launcher\0-f\0k.json"),
          .parent_role = AFZ_ROLE_KERNEL},
         AFZ_ROLE_WORKER,
         -1},
        {"what runs one notebook is no server",
         {.cmdline = ARGS("/v/bin/python3\0/v/bin/jupyter-nbconvert\0--execute\0a.ipynb")},
         AFZ_ROLE_LAUNCHER,
         -1},
        {"an editor's server",
         {.cmdline = ARGS("/home/u/.vscode-server/cli/servers/Stable-1/server/node\0x.js")},
         AFZ_ROLE_SERVER,
         -1},
        {"an option's argument is no script",
         {.cmdline = ARGS("python\0-W\0torchrun\0train.py"), .is_root = 1},
         AFZ_ROLE_MAIN,
         -1},
        {"python alone", {.cmdline = ARGS("python"), .is_root = 1}, AFZ_ROLE_MAIN, -1},
        {"python -c, cut off", {.cmdline = ARGS("python\0-c"), .is_root = 1}, AFZ_ROLE_MAIN, -1},
        {"a helper of the trainer",
         {.cmdline = ARGS("nvidia-smi"),
          .parent_cmdline = ARGS("python\0t.py"),
          .parent_role = AFZ_ROLE_MAIN},
         AFZ_ROLE_OTHER,
         -1},
        {"two with nothing to tell are not alike",
         {.cmdline = NOTHING, .parent_cmdline = NOTHING, .parent_role = AFZ_ROLE_MAIN},
         AFZ_ROLE_OTHER,
         -1},
        {"no NUL at the end", {.cmdline = TEXT("bash"), .is_root = 1}, AFZ_ROLE_MAIN, -1},
        {"empty words", {.cmdline = ARGS("\0\0\0"), .is_root = 1}, AFZ_ROLE_MAIN, -1},
        {"a rank that is none",
         {.cmdline = ARGS("x"), .environ = ARGS("RANK=-1"), .is_root = 1},
         AFZ_ROLE_MAIN,
         -1},
        {"a rank of words",
         {.cmdline = ARGS("x"), .environ = ARGS("RANK=one"), .is_root = 1},
         AFZ_ROLE_MAIN,
         -1},
        {"a rank too large",
         {.cmdline = ARGS("x"), .environ = ARGS("RANK=99999999999"), .is_root = 1},
         AFZ_ROLE_MAIN,
         -1},
        {"a rank without a value",
         {.cmdline = ARGS("x"), .environ = ARGS("RANK="), .is_root = 1},
         AFZ_ROLE_MAIN,
         -1},
        {"a rank that was cut off",
         {.cmdline = ARGS("x"), .environ = TEXT("A=1\0RANK=12"), .is_root = 1},
         AFZ_ROLE_MAIN,
         -1},
        {"a hostile name",
         {.comm = TEXT("foo) Z "), .cmdline = ARGS("foo) Z "), .is_root = 1},
         AFZ_ROLE_MAIN,
         -1},
};

static void test_roles(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct afz_role_guess g = afz_role_guess(&cases[i].clues);
                if (g.role != cases[i].role || g.rank != cases[i].rank)
                        fail_msg("%s: '%s', rank %d", cases[i].what, afz_role_name(g.role),
                                 (int)g.rank);
        }
}

static void test_names(void **state)
{
        (void)state;
        for (int i = 1; i < AFZ_ROLE_COUNT; i++)
                assert_true(afz_role_name((enum afz_role)i)[0] != '\0');
        assert_string_equal(afz_role_name(AFZ_ROLE_OTHER), "");
        assert_string_equal(afz_role_name((enum afz_role)99), "");
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_roles),
                cmocka_unit_test(test_names),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
