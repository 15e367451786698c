/* antifreeze doctor: says what src/doctor found, for people or as JSON. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "doctor.h"
#include "env.h"
#include "find_probe.h"
#include "gpu_facts.h"
#include "json.h"
#include "out.h"
#include "probe_trial.h"

/* NVML takes 1 to 2 s to start on a machine with many GPUs whose driver does not persist. */
#define GPU_WAIT_NS UINT64_C(5000000000)

/* Columns: two blanks, the level, the title, the text. */
enum { LEVEL_WIDTH = 8, TITLE_WIDTH = 18, TEXT_AT = 2 + LEVEL_WIDTH + TITLE_WIDTH, TEXT_MIN = 30 };

struct doctor_options {
        bool json, no_trials;
};

/* How the text is shown. width 0: lines are not broken. */
struct style {
        bool colour;
        size_t width;
};

static const char *colour_of(enum afz_finding_level level)
{
        static const char *const code[AFZ_FINDING_LEVELS] = {
                [AFZ_FINDING_OK] = "\033[32m",
                [AFZ_FINDING_WARN] = "\033[33m",
                [AFZ_FINDING_MISSING] = "\033[31m",
                [AFZ_FINDING_UNKNOWN] = "\033[36m",
        };
        return code[level] ? code[level] : "";
}

static void pad(struct afz_out *out, size_t n)
{
        while (n-- > 0)
                afz_out_char(out, ' ');
}

/* A text from column `at` on, broken between words when there is a width. */
static void put_wrapped(struct afz_out *out, const struct style *style, size_t at, const char *text)
{
        size_t room = style->width > at + TEXT_MIN ? style->width - at : TEXT_MIN;
        while (style->width > 0 && strlen(text) > room) {
                size_t n = room;
                while (n > 0 && text[n] != ' ')
                        n--;
                if (n == 0)
                        n = strcspn(text, " ");
                afz_out_bytes(out, text, n);
                text += n + (text[n] == ' ');
                if (!*text)
                        break;
                afz_out_char(out, '\n');
                pad(out, at);
        }
        afz_out_str(out, text);
        afz_out_char(out, '\n');
}

static void put_cell(struct afz_out *out, size_t width, const char *text)
{
        size_t n = strlen(text);
        afz_out_str(out, text);
        pad(out, n < width ? width - n : 1);
}

static void put_level(struct afz_out *out, const struct style *style, enum afz_finding_level level,
                      const char *word)
{
        pad(out, 2);
        if (style->colour)
                afz_out_str(out, colour_of(level));
        put_cell(out, LEVEL_WIDTH, word);
        if (style->colour)
                afz_out_str(out, "\033[0m");
}

static void put_heading(struct afz_out *out, const struct style *style, const char *text)
{
        afz_out_fmt(out, "%s%s%s\n", style->colour ? "\033[1m" : "", text,
                    style->colour ? "\033[0m" : "");
}

static void put_checks(struct afz_out *out, const struct style *style,
                       const struct afz_diagnosis *d)
{
        const char *group = "";
        for (size_t i = 0; i < afz_check_count; i++) {
                const struct afz_check *check = &afz_check_table[i];
                const struct afz_finding *f = &d->finding[i];
                if (f->level == AFZ_FINDING_SKIP)
                        continue;
                if (strcmp(group, check->group) != 0)
                        put_heading(out, style, group = check->group);
                put_level(out, style, f->level, afz_finding_level_name(f->level));
                put_cell(out, TITLE_WIDTH, check->title);
                put_wrapped(out, style, TEXT_AT, f->text);
                /* Not broken: it is there to be copied. */
                if (f->fix[0]) {
                        pad(out, 2 + LEVEL_WIDTH);
                        put_cell(out, TITLE_WIDTH, "  to fix:");
                        afz_out_fmt(out, "%s\n", f->fix);
                }
        }
}

static void put_features(struct afz_out *out, const struct style *style)
{
        put_heading(out, style, "Built with");
        for (size_t i = 0; i < afz_feature_count; i++) {
                const struct afz_feature *f = &afz_feature_table[i];
                bool in = f->version[0] != '\0';
                char text[160];
                afz_path(text, sizeof text, "%s%s%s", in ? f->version : "left out", ": ", f->use);
                put_level(out, style, in ? AFZ_FINDING_OK : AFZ_FINDING_UNKNOWN, in ? "in" : "out");
                put_cell(out, TITLE_WIDTH, f->name);
                put_wrapped(out, style, TEXT_AT, text);
        }
}

static void put_summary(struct afz_out *out, const struct style *style,
                        const struct afz_diagnosis *d)
{
        unsigned count[AFZ_FINDING_LEVELS] = {0};
        for (size_t i = 0; i < afz_check_count; i++)
                count[d->finding[i].level]++;
        afz_out_fmt(out, "\n%sprotection possible here: %s%s%s; %u ok",
                    style->colour ? "\033[1m" : "", afz_doctor_tier_name(d->tier),
                    style->colour ? "\033[0m" : "",
                    d->proved ? " (proved)" : " (a forecast, not proved)", count[AFZ_FINDING_OK]);
        for (int level = AFZ_FINDING_WARN; level <= AFZ_FINDING_UNKNOWN; level++)
                if (count[level])
                        afz_out_fmt(out, ", %u %s", count[level],
                                    afz_finding_level_name((enum afz_finding_level)level));
        afz_out_char(out, '\n');
}

static void put_json_checks(struct afz_json *j, const struct afz_diagnosis *d)
{
        afz_json_open(j, '[');
        for (size_t i = 0; i < afz_check_count; i++) {
                const struct afz_finding *f = &d->finding[i];
                if (f->level == AFZ_FINDING_SKIP)
                        continue;
                afz_json_open(j, '{');
                afz_json_key(j, "id"), afz_json_str(j, afz_check_table[i].id);
                afz_json_key(j, "title"), afz_json_str(j, afz_check_table[i].title);
                afz_json_key(j, "level"), afz_json_str(j, afz_finding_level_name(f->level));
                afz_json_key(j, "text"), afz_json_str(j, f->text);
                afz_json_key(j, "fix"), afz_json_str(j, f->fix[0] ? f->fix : NULL);
                afz_json_close(j, '}');
        }
        afz_json_close(j, ']');
}

static void put_json_trials(struct afz_json *j, const struct afz_diagnosis *d)
{
        afz_json_open(j, '[');
        for (size_t i = 0; i < d->trials; i++) {
                const struct afz_trial *t = &d->trial[i];
                afz_json_open(j, '{');
                afz_json_key(j, "tier"), afz_json_str(j, afz_tier_name(t->tier));
                afz_json_key(j, "proved"), afz_json_bool(j, afz_trial_proved(t));
                afz_json_key(j, "offered"), afz_json_bool(j, t->opened);
                afz_json_key(j, "limited"), afz_json_bool(j, t->limited);
                afz_json_key(j, "braked"), afz_json_bool(j, t->braked);
                afz_json_key(j, "killed"), afz_json_bool(j, t->killed);
                afz_json_key(j, "clean"), afz_json_bool(j, t->clean);
                afz_json_key(j, "took_ns"), afz_json_u64(j, t->took_ns);
                afz_json_key(j, "why"), afz_json_str(j, t->why[0] ? t->why : NULL);
                afz_json_close(j, '}');
        }
        afz_json_close(j, ']');
}

static void put_json_probe(struct afz_json *j, const struct afz_probe_facts *p)
{
        if (!p) {
                afz_json_null(j);
                return;
        }
        afz_json_open(j, '{');
        afz_json_key(j, "library"), afz_json_str(j, p->found ? p->library : NULL);
        afz_json_key(j, "tried"), afz_json_bool(j, p->tried);
        afz_json_key(j, "seen"), afz_json_bool(j, p->seen);
        afz_json_key(j, "why"), afz_json_str(j, p->why[0] ? p->why : NULL);
        afz_json_key(j, "pythons"), afz_json_open(j, '[');
        for (size_t i = 0; i < p->pythons; i++) {
                const struct afz_tried_python *python = &p->python[i];
                afz_json_open(j, '{');
                afz_json_key(j, "path"), afz_json_str(j, python->path);
                afz_json_key(j, "version"),
                        afz_json_str(j, python->version[0] ? python->version : NULL);
                afz_json_key(j, "probed"), afz_json_bool(j, python->probed);
                afz_json_key(j, "stack"), afz_json_bool(j, python->stack_err == 0);
                afz_json_key(j, "why"), afz_json_str(j, python->why[0] ? python->why : NULL);
                afz_json_close(j, '}');
        }
        afz_json_close(j, ']');
        afz_json_close(j, '}');
}

static void put_json(struct afz_out *out, const struct afz_diagnosis *d,
                     const struct afz_probe_facts *probe)
{
        struct afz_json j = {.out = out};
        afz_json_open(&j, '{');
        afz_json_key(&j, "schema"), afz_json_u64(&j, 1);
        afz_json_key(&j, "checks"), put_json_checks(&j, d);
        afz_json_key(&j, "features"), afz_json_open(&j, '[');
        for (size_t i = 0; i < afz_feature_count; i++) {
                const struct afz_feature *f = &afz_feature_table[i];
                afz_json_open(&j, '{');
                afz_json_key(&j, "name"), afz_json_str(&j, f->name);
                afz_json_key(&j, "version"), afz_json_str(&j, f->version[0] ? f->version : NULL);
                afz_json_key(&j, "use"), afz_json_str(&j, f->use);
                afz_json_close(&j, '}');
        }
        afz_json_close(&j, ']');
        afz_json_key(&j, "tier_possible"), afz_json_str(&j, afz_doctor_tier_name(d->tier));
        afz_json_key(&j, "tier_proved"), afz_json_bool(&j, d->proved);
        afz_json_key(&j, "trials"), put_json_trials(&j, d);
        afz_json_key(&j, "probe"), put_json_probe(&j, probe);
        afz_json_close(&j, '}');
        afz_out_char(out, '\n');
}

static struct style style_of(const struct afz_doctor_input *in)
{
        struct style style = {0};
        const char *none = in->effects.variable(in->effects.ctx, "NO_COLOR");
        const char *term = in->effects.variable(in->effects.ctx, "TERM");
        if (!isatty(STDOUT_FILENO))
                return style;
        style.width = (size_t)afz_columns();
        style.colour = !(none && none[0]) && term && strcmp(term, "dumb") != 0;
        return style;
}

/* What holds here says nothing of the machine that a fixture shows. */
static void look_at_probe(struct afz_doctor_input *in, bool tries, struct afz_probe_facts *ret)
{
        char library[sizeof ret->library];
        bool found = afz_find_probe(library, sizeof library) == 0;
        if (in->env->fixture_fd >= 0)
                return;
        *ret = (struct afz_probe_facts){.found = found};
        if (tries)
                afz_probe_trial(found ? library : NULL, getenv("PATH"), ret);
        else if (found)
                memcpy(ret->library, library, sizeof library);
        in->probe = ret;
}

static int run_doctor(const struct afz_invocation *invocation)
{
        const struct doctor_options *options = invocation->options;
        struct afz_env env;
        struct afz_doctor_input in;
        struct afz_gpu_facts gpu;
        struct afz_probe_facts probe;
        struct afz_diagnosis diagnosis;
        char buf[4096];

        int r = afz_env_open_live(&env);
        if (r < 0)
                return afz_fail(AFZ_EXIT_USAGE, "/proc cannot be opened: %s", strerror(-r));
        afz_doctor_input_live(&env, &in);
        if (options->no_trials)
                in.effects.trial = NULL;
        look_at_probe(&in, !options->no_trials, &probe);
        r = afz_gpu_facts_ask(&env, GPU_WAIT_NS, &gpu);
        if (r == 0) {
                in.gpu = &gpu;
                r = afz_doctor_run(&in, &diagnosis);
        }
        afz_env_done(&env);
        if (r < 0)
                return afz_fail(AFZ_EXIT_USAGE, "doctor: %s", strerror(-r));

        struct afz_out out = afz_out_to(STDOUT_FILENO, buf, sizeof buf);
        if (options->json) {
                put_json(&out, &diagnosis, in.probe);
        } else {
                struct style style = style_of(&in);
                put_checks(&out, &style, &diagnosis);
                put_features(&out, &style);
                put_summary(&out, &style, &diagnosis);
        }
        r = afz_out_flush(&out);
        return r < 0 ? afz_fail(AFZ_EXIT_USAGE, "writing: %s", strerror(-r)) : 0;
}

static const struct afz_option doctor_rows[] = {
        {.name = "json",
         .offset = offsetof(struct doctor_options, json),
         .help = "One JSON object instead of text."},
        {.name = "no-trials",
         .offset = offsetof(struct doctor_options, no_trials),
         .help = "Try nothing; forecast the tier from what is configured."},
        {0},
};

static const struct afz_example doctor_examples[] = {
        {"antifreeze doctor", "What this machine offers, what is risky on it, and how to fix it."},
        {"antifreeze doctor --json | jq -r .tier_possible", "Only the tier of protection."},
        {0},
};

const struct afz_command afz_command_doctor = {
        .name = "doctor",
        .summary = "say what protection is possible here and what is risky",
        .description =
                "Looks at the machine and says, line by line, what Antifreeze can see and do here: "
                "ok, warn (works, but is risky), missing (not offered) or unknown (we may not "
                "look), each with the way to fix it. Nothing is changed, and no root is "
                "needed.\n\nThe tier of protection is proved by a small trial, from the best "
                "tier downwards until one holds: a child of our own with 32 MiB is really "
                "limited, braked and killed. So is the probe: on a small program, and on each "
                "Python in PATH. It takes a fraction of a second and leaves nothing behind. The "
                "exit status is 0 whenever there is an answer, whatever it is.",
        .options = doctor_rows,
        .options_size = sizeof(struct doctor_options),
        .examples = doctor_examples,
        .run = run_doctor,
};
