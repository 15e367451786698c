#include "completion.h"

#include <errno.h>
#include <string.h>

#include "completion_parts.h"

const char *const afz_completion_shells[] = {"bash", "zsh", "fish", NULL};

static void (*const writers[])(FILE *, const struct afz_program *) = {
        afz_completion_bash,
        afz_completion_zsh,
        afz_completion_fish,
};

const struct afz_completion_kind afz_completion_kinds[] = {
        {AFZ_COMPLETE_PID, "pid"},
        {AFZ_COMPLETE_RUN, "run"},
        {AFZ_COMPLETE_DIR, "dir"},
        {AFZ_COMPLETE_FILE, "file"},
        {AFZ_COMPLETE_PROGRAM, "program"},
        {AFZ_COMPLETE_COMMAND, "command"},
        {0},
};

void afz_completion_put_script(FILE *out, const struct afz_program *program, const char *script)
{
        for (; *script; script++) {
                if (*script == '^')
                        fputs(program->name, out);
                else
                        fputc(*script, out);
        }
}

size_t afz_completion_brief(const char *help)
{
        const char *end = strstr(help, ". ");
        size_t len = end ? (size_t)(end - help) : strlen(help);

        while (len > 0 && help[len - 1] == '.')
                len--;
        return len;
}

void afz_completion_put_escaped(FILE *out, const char *text, size_t len, const char *special)
{
        for (size_t i = 0; i < len; i++) {
                if (strchr(special, text[i]))
                        fputc('\\', out);
                fputc(text[i] == '\n' ? ' ' : text[i], out);
        }
}

int afz_completion_write(FILE *out, const struct afz_program *program, const char *shell)
{
        for (size_t i = 0; afz_completion_shells[i]; i++) {
                if (strcmp(afz_completion_shells[i], shell) != 0)
                        continue;
                writers[i](out, program);
                return fflush(out) != 0 || ferror(out) ? -EIO : 0;
        }
        return -ENOENT;
}
