#include "role.h"

#include <stddef.h>
#include <string.h>

#include "count_of.h"

/* One of several NUL-terminated words, as in cmdline and environ. */
static int next_word(struct afz_span *list, struct afz_span *ret)
{
        return afz_span_take_until(list, '\0', ret);
}

enum match { EXACT, PREFIX, INSIDE };

struct rule {
        const char *text;
        enum match match;
        enum afz_role role;
};

/* By the name of the program, or of the script that an interpreter runs. */
static const struct rule program_rules[] = {
        {"sh", EXACT, AFZ_ROLE_SHELL},
        {"bash", EXACT, AFZ_ROLE_SHELL},
        {"dash", EXACT, AFZ_ROLE_SHELL},
        {"zsh", EXACT, AFZ_ROLE_SHELL},
        {"fish", EXACT, AFZ_ROLE_SHELL},
        {"env", EXACT, AFZ_ROLE_SHELL},
        {"time", EXACT, AFZ_ROLE_SHELL},
        {"nohup", EXACT, AFZ_ROLE_SHELL},
        {"torchrun", EXACT, AFZ_ROLE_LAUNCHER},
        {"accelerate", EXACT, AFZ_ROLE_LAUNCHER},
        {"deepspeed", EXACT, AFZ_ROLE_LAUNCHER},
        {"mpirun", EXACT, AFZ_ROLE_LAUNCHER},
        {"mpiexec", PREFIX, AFZ_ROLE_LAUNCHER},
        {"horovodrun", EXACT, AFZ_ROLE_LAUNCHER},
        {"srun", EXACT, AFZ_ROLE_LAUNCHER},
        {"uv", EXACT, AFZ_ROLE_LAUNCHER},
        {"papermill", EXACT, AFZ_ROLE_LAUNCHER},
        {"ipykernel_launcher", PREFIX, AFZ_ROLE_KERNEL},
        /* These run one notebook and end with it. */
        {"jupyter-nbconvert", EXACT, AFZ_ROLE_LAUNCHER},
        {"jupyter-execute", EXACT, AFZ_ROLE_LAUNCHER},
        {"jupyter-run", EXACT, AFZ_ROLE_LAUNCHER},
        {"jupyter-console", EXACT, AFZ_ROLE_LAUNCHER},
        {"jupyter", PREFIX, AFZ_ROLE_SERVER},
        {"code", EXACT, AFZ_ROLE_SERVER},
        {"code-insiders", EXACT, AFZ_ROLE_SERVER},
        {"codium", EXACT, AFZ_ROLE_SERVER},
        {"code-server", EXACT, AFZ_ROLE_SERVER},
        {"spyder", PREFIX, AFZ_ROLE_SERVER},
};

/* By a folder on the way to the program: editors' servers bring a node of their own. */
static const struct rule folder_rules[] = {
        {"/.vscode-server/", INSIDE, AFZ_ROLE_SERVER},
        {"/.cursor-server/", INSIDE, AFZ_ROLE_SERVER},
        {"/code-server/", INSIDE, AFZ_ROLE_SERVER},
        {"/openvscode-server/", INSIDE, AFZ_ROLE_SERVER},
};

/* By the module that `python -m` runs. */
static const struct rule module_rules[] = {
        {"torch.distributed.run", EXACT, AFZ_ROLE_LAUNCHER},
        {"torch.distributed.launch", EXACT, AFZ_ROLE_LAUNCHER},
        {"accelerate", PREFIX, AFZ_ROLE_LAUNCHER},
        {"ipykernel_launcher", EXACT, AFZ_ROLE_KERNEL},
        {"ipykernel", PREFIX, AFZ_ROLE_KERNEL},
        {"spyder_kernels", PREFIX, AFZ_ROLE_KERNEL},
        {"nbconvert", EXACT, AFZ_ROLE_LAUNCHER},
        {"papermill", EXACT, AFZ_ROLE_LAUNCHER},
        {"jupyter", PREFIX, AFZ_ROLE_SERVER},
        {"notebook", EXACT, AFZ_ROLE_SERVER},
};

/* By what multiprocessing gives its helpers to run with `python -c`. */
static const struct rule code_rules[] = {
        {"from multiprocessing.spawn import", PREFIX, AFZ_ROLE_WORKER},
        {"from multiprocessing.resource_tracker", PREFIX, AFZ_ROLE_TRACKER},
        {"from multiprocessing.semaphore_tracker", PREFIX, AFZ_ROLE_TRACKER},
        {"from multiprocessing.forkserver", PREFIX, AFZ_ROLE_TRACKER},
        {"from joblib.externals.loky.backend.resource_tracker", PREFIX, AFZ_ROLE_TRACKER},
};

static enum afz_role match(struct afz_span s, const struct rule *rules, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const char *text = rules[i].text;
                bool hit = rules[i].match == EXACT    ? afz_span_eq(s, text)
                           : rules[i].match == PREFIX ? afz_span_starts(s, text)
                                                      : afz_span_has(s, text);
                if (hit)
                        return rules[i].role;
        }
        return AFZ_ROLE_OTHER;
}

static bool is_python(struct afz_span program)
{
        return afz_span_starts(program, "python") || afz_span_starts(program, "pypy");
}

/* What a Python command line runs: a script, a module or a piece of code. */
static enum afz_role python_role(struct afz_span args)
{
        struct afz_span word;
        while (next_word(&args, &word) == 0) {
                if (afz_span_eq(word, "-c") || afz_span_eq(word, "-m")) {
                        bool code = word.p[1] == 'c';
                        if (next_word(&args, &word) < 0)
                                break;
                        return code ? match(word, code_rules, AFZ_COUNT_OF(code_rules))
                                    : match(word, module_rules, AFZ_COUNT_OF(module_rules));
                }
                if (afz_span_eq(word, "-W") || afz_span_eq(word, "-X")) {
                        (void)next_word(&args, &word);
                        continue;
                }
                if (afz_span_starts(word, "-"))
                        continue;
                return match(afz_span_base_name(word), program_rules, AFZ_COUNT_OF(program_rules));
        }
        return AFZ_ROLE_OTHER;
}

static enum afz_role by_command(const struct afz_role_clues *c)
{
        struct afz_span args = c->cmdline, path;
        if (next_word(&args, &path) < 0)
                return AFZ_ROLE_OTHER;
        struct afz_span program = afz_span_base_name(path);
        if (is_python(program))
                return python_role(args);
        enum afz_role role = match(program, program_rules, AFZ_COUNT_OF(program_rules));
        return role != AFZ_ROLE_OTHER ? role
                                      : match(path, folder_rules, AFZ_COUNT_OF(folder_rules));
}

/* Every notebook server hands its kernels, of whatever language, the path of such a file. */
static bool has_connection_file(struct afz_span cmdline)
{
        struct afz_span word;
        while (next_word(&cmdline, &word) == 0) {
                struct afz_span file = afz_span_base_name(word);
                if (afz_span_starts(file, "kernel-") && afz_span_ends(file, ".json"))
                        return true;
        }
        return false;
}

/* The number after "NAME=" in the environment; -1 when it is not there. */
static int64_t env_number(struct afz_span environ, const char *name)
{
        struct afz_span word;
        size_t n = strlen(name);
        while (next_word(&environ, &word) == 0) {
                if (word.n <= n || !afz_span_starts(word, name) || word.p[n] != '=')
                        continue;
                uint64_t v;
                struct afz_span value = {word.p + n + 1, word.n - n - 1};
                return afz_span_u64(value, &v) == 0 && v <= INT32_MAX ? (int64_t)v : -1;
        }
        return -1;
}

/* A child that has its parent's very command line was forked and never ran anything else: that is
 * how DataLoader and other multiprocessing workers look. A trainer that was not asked for by pid
 * but runs below a shell or a launcher is no such child. */
static bool is_forked(const struct afz_role_clues *c)
{
        return c->cmdline.n > 0 && c->cmdline.n == c->parent_cmdline.n &&
               memcmp(c->cmdline.p, c->parent_cmdline.p, c->cmdline.n) == 0;
}

static bool holds_no_training(enum afz_role role)
{
        return role == AFZ_ROLE_SHELL || role == AFZ_ROLE_LAUNCHER || role == AFZ_ROLE_SERVER;
}

struct afz_role_guess afz_role_guess(const struct afz_role_clues *c)
{
        struct afz_role_guess g = {
                .role = by_command(c),
                .rank = env_number(c->environ, "RANK"),
                .local_rank = env_number(c->environ, "LOCAL_RANK"),
        };
        if (g.role == AFZ_ROLE_KERNEL && c->parent_role == AFZ_ROLE_KERNEL && is_forked(c))
                g.role = AFZ_ROLE_WORKER;
        if (g.role != AFZ_ROLE_OTHER)
                return g;
        if (afz_span_starts(c->comm, "pt_data_worker"))
                g.role = AFZ_ROLE_WORKER;
        else if (c->parent_role == AFZ_ROLE_SERVER && has_connection_file(c->cmdline))
                g.role = AFZ_ROLE_KERNEL;
        else if (c->is_root)
                g.role = g.rank >= 0 ? AFZ_ROLE_RANK : AFZ_ROLE_MAIN;
        else if (is_forked(c) && c->parent_role != AFZ_ROLE_SHELL)
                g.role = AFZ_ROLE_WORKER;
        else if (holds_no_training(c->parent_role))
                g.role = g.rank >= 0 ? AFZ_ROLE_RANK : AFZ_ROLE_MAIN;
        return g;
}

const char *afz_role_name(enum afz_role role)
{
        static const char *const name[AFZ_ROLE_COUNT] = {
                [AFZ_ROLE_OTHER] = "",          [AFZ_ROLE_MAIN] = "main",
                [AFZ_ROLE_SHELL] = "shell",     [AFZ_ROLE_LAUNCHER] = "launcher",
                [AFZ_ROLE_RANK] = "rank",       [AFZ_ROLE_WORKER] = "loader worker",
                [AFZ_ROLE_TRACKER] = "tracker", [AFZ_ROLE_SERVER] = "server",
                [AFZ_ROLE_KERNEL] = "kernel",
        };
        return (unsigned)role < AFZ_ROLE_COUNT ? name[role] : "";
}
