/* kernel: a Jupyter kernel whose notebooks are held. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "env.h"
#include "find_python.h"
#include "json.h"
#include "quantity.h"

struct options {
        struct afz_size_or_percent budget;
        const char *python, *name, *display_name, *prefix;
        int policy;
};

static const char *const actions[] = {"install", "remove", NULL};
/* A kernel's name is also that of a folder and part of addresses. */
static bool is_name(const char *name)
{
        return *name && name[0] != '.' &&
               name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-")] == '\0';
}

/* Where Jupyter looks for kernels of this user, or of the environment `prefix`. */
static int find_folder(const struct options *opt, char *ret, size_t cap)
{
        const char *jupyter = getenv("JUPYTER_DATA_DIR"), *data = getenv("XDG_DATA_HOME");
        const char *home = getenv("HOME");
        int r = -ENOENT;
        if (opt->prefix)
                r = afz_path(ret, cap, "%s/share/jupyter/kernels/%s", opt->prefix, opt->name);
        else if (jupyter && *jupyter)
                r = afz_path(ret, cap, "%s/kernels/%s", jupyter, opt->name);
        else if (data && data[0] == '/')
                r = afz_path(ret, cap, "%s/jupyter/kernels/%s", data, opt->name);
        else if (home && *home)
                r = afz_path(ret, cap, "%s/.local/share/jupyter/kernels/%s", home, opt->name);
        return r > 0 ? 0 : -ENOENT;
}

static int make_folders(char *path)
{
        for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
                if (slash)
                        *slash = '\0';
                int r = mkdir(path, 0777) < 0 && errno != EEXIST ? -errno : 0;
                if (slash)
                        *slash = '/';
                if (r < 0 || !slash)
                        return r;
        }
}

/* Whether it can `import ipykernel`. */
static bool has_ipykernel(const char *python)
{
        pid_t pid = fork();
        if (pid == 0) {
                int null = open("/dev/null", O_RDWR | O_CLOEXEC);
                for (int fd = 0; null >= 0 && fd < 3; fd++)
                        (void)dup2(null, fd);
                execl(python, python, "-c", "import ipykernel", (char *)NULL);
                _exit(127);
        }
        int status = 1;
        return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void write_spec(struct afz_out *out, const struct options *opt, const char *self,
                       const char *python, bool budget_given)
{
        struct afz_json j = {.out = out};
        char budget[32];
        afz_json_open(&j, '{');
        afz_json_key(&j, "argv"), afz_json_open(&j, '[');
        afz_json_str(&j, self), afz_json_str(&j, "run");
        afz_json_str(&j, "--policy"), afz_json_str(&j, afz_policy_choices[opt->policy]);
        if (budget_given && opt->budget.is_percent)
                snprintf(budget, sizeof budget, "%u.%02u%%", opt->budget.permyriad / 100,
                         opt->budget.permyriad % 100);
        else
                snprintf(budget, sizeof budget, "%llu", (unsigned long long)opt->budget.bytes);
        if (budget_given)
                afz_json_str(&j, "--budget"), afz_json_str(&j, budget);
        static const char *const words[] = {"-m", "ipykernel_launcher", "-f", "{connection_file}"};
        afz_json_str(&j, "--"), afz_json_str(&j, python);
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
                afz_json_str(&j, words[i]);
        afz_json_close(&j, ']');
        afz_json_key(&j, "display_name"), afz_json_str(&j, opt->display_name);
        afz_json_key(&j, "language"), afz_json_str(&j, "python");
        afz_json_key(&j, "metadata"), afz_json_open(&j, '{');
        afz_json_key(&j, "debugger"), afz_json_bool(&j, true);
        afz_json_close(&j, '}');
        afz_json_close(&j, '}');
        afz_out_char(out, '\n');
}

/* Whole or not at all: Jupyter reads it at any time. */
static int put_spec(const char *folder, const char *text, size_t n)
{
        char path[1280], part[1280];
        if (afz_path(path, sizeof path, "%s/kernel.json", folder) <= 0 ||
            afz_path(part, sizeof part, "%s/kernel.json.part", folder) <= 0)
                return -ENAMETOOLONG;
        int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fd < 0)
                return -errno;
        int r = afz_write_all(fd, text, n);
        if (close(fd) < 0 && r >= 0)
                r = -errno;
        if (r >= 0 && rename(part, path) < 0)
                r = -errno;
        if (r < 0)
                (void)unlink(part);
        return r;
}

static int install(const struct options *opt, bool budget_given)
{
        char folder[1024], python[1024], self[1024], text[8192];
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        if (n <= 0)
                return afz_fail(AFZ_EXIT_USAGE, "kernel: where this program lies is not known");
        self[n] = '\0';
        if (find_folder(opt, folder, sizeof folder) < 0)
                return afz_fail(AFZ_EXIT_USAGE,
                                "kernel: there is no HOME to install into; --prefix names a place");
        if (opt->python ? afz_path(python, sizeof python, "%s", opt->python) <= 0
                        : afz_find_python(NULL, python, sizeof python) < 0)
                return afz_fail(AFZ_EXIT_USAGE, "kernel: no Python was found; --python names one");
        if (python[0] != '/' || access(python, X_OK) < 0)
                return afz_fail(AFZ_EXIT_USAGE,
                                "kernel: '%s' is no program; --python wants the whole path of an "
                                "interpreter, such as /usr/bin/python3",
                                python);
        if (!has_ipykernel(python))
                return afz_fail(AFZ_EXIT_USAGE,
                                "kernel: %s has no ipykernel, which notebooks need: %s -m pip "
                                "install ipykernel, or --python names another",
                                python, python);
        struct afz_out out = afz_out_to(-1, text, sizeof text);
        write_spec(&out, opt, self, python, budget_given);
        int r = out.err < 0 ? out.err : make_folders(folder);
        if (r >= 0)
                r = put_spec(folder, text, out.len);
        if (r < 0)
                return afz_fail(AFZ_EXIT_USAGE, "kernel: %s: %s", folder, strerror(-r));
        afz_say("notebooks can choose the kernel '%s' now: %s, held by Antifreeze (%s)",
                opt->display_name, python, folder);
        return 0;
}

static int remove_it(const struct options *opt)
{
        char folder[1024], path[1280];
        if (find_folder(opt, folder, sizeof folder) < 0 ||
            afz_path(path, sizeof path, "%s/kernel.json", folder) <= 0)
                return afz_fail(AFZ_EXIT_USAGE, "kernel: there is no HOME to look into");
        if (unlink(path) < 0)
                return errno == ENOENT
                               ? afz_fail(AFZ_EXIT_USAGE,
                                          "kernel: there is none to remove: no %s; --name "
                                          "or --prefix names another",
                                          path)
                               : afz_fail(AFZ_EXIT_USAGE, "kernel: %s: %s", path, strerror(errno));
        if (rmdir(folder) < 0 && errno != ENOTEMPTY)
                return afz_fail(AFZ_EXIT_USAGE, "kernel: %s: %s", folder, strerror(errno));
        return 0;
}

static int run_kernel(const struct afz_invocation *inv)
{
        const struct options *opt = inv->options;
        if (!is_name(opt->name))
                return afz_fail(AFZ_EXIT_USAGE,
                                "kernel: --name has small letters, digits, '.', '_' and '-'");
        if (strcmp(inv->argv[0], actions[0]) == 0)
                return install(opt, afz_invocation_given(inv, "budget"));
        if (strcmp(inv->argv[0], actions[1]) == 0)
                return remove_it(opt);
        return afz_fail(AFZ_EXIT_USAGE, "kernel: '%s' is neither install nor remove", inv->argv[0]);
}

static const struct afz_option rows[] = {
        {.name = "python",
         .arg = "FILE",
         .type = AFZ_OPTION_STRING,
         .complete = AFZ_COMPLETE_FILE,
         .offset = offsetof(struct options, python),
         .default_text = "that of the active virtual environment, else of PATH",
         .help = "The interpreter of the notebooks. It needs ipykernel."},
        {.name = "budget",
         .arg = "SIZE|%",
         .type = AFZ_OPTION_SIZE_OR_PERCENT,
         .offset = offsetof(struct options, budget),
         .default_text = "what is available when a notebook is opened, less a reserve",
         .help = "How much RAM a notebook may use."},
        {.name = "policy",
         .arg = "POLICY",
         .type = AFZ_OPTION_CHOICE,
         .offset = offsetof(struct options, policy),
         .choices = afz_policy_choices,
         .default_text = "protect",
         .help = "As of run."},
        {.name = "name",
         .arg = "NAME",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct options, name),
         .default_text = "antifreeze",
         .help = "The kernel's folder, so that there may be several."},
        {.name = "display-name",
         .arg = "TEXT",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct options, display_name),
         .default_text = "Python 3 (Antifreeze)",
         .help = "How it is called where kernels are chosen."},
        {.name = "prefix",
         .arg = "DIR",
         .type = AFZ_OPTION_STRING,
         .complete = AFZ_COMPLETE_DIR,
         .offset = offsetof(struct options, prefix),
         .default_text = "your own, for all environments",
         .help = "Install for the environment in DIR, such as a virtual one."},
        {0},
};

static const struct options defaults = {
        .policy = 1,
        .name = "antifreeze",
        .display_name = "Python 3 (Antifreeze)",
};

static const struct afz_operand operands[] = {
        {.name = "ACTION", .choices = actions},
        {0},
};

static const struct afz_example examples[] = {
        {"antifreeze kernel install", "Then choose Python 3 (Antifreeze) in Jupyter or VS Code."},
        {"antifreeze kernel install --budget 8G --name small --display-name 'Python, 8 GB'",
         "Another one, with a budget."},
        {0},
};

const struct afz_command afz_command_kernel = {
        .name = "kernel",
        .summary = "a Jupyter kernel whose notebooks are held",
        .description = "install adds a kernel to Jupyter's that starts notebooks under "
                       "`antifreeze run`: they cannot take the machine down, and `antifreeze why` "
                       "tells what they needed. remove takes it away again. Nothing else of "
                       "Jupyter's is touched; a kernel of that name is replaced.",
        .operands = operands,
        .options = rows,
        .examples = examples,
        .options_size = sizeof(struct options),
        .defaults = &defaults,
        .run = run_kernel,
};
