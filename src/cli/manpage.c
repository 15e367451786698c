#include "manpage.h"

#include <errno.h>
#include <string.h>

#include "count_of.h"

/* roff reads a line that starts with . or ' as a request, \ as an escape, and - as a hyphen that
 * can be broken at and cannot be pasted into a shell. Everything is therefore written through
 * put_char(). */
static void put_char(FILE *out, char c)
{
        static const char *const escapes[] = {
                ['\\'] = "\\e",  ['-'] = "\\-",   ['\''] = "\\(aq", ['`'] = "\\(ga",
                ['^'] = "\\(ha", ['~'] = "\\(ti", ['"'] = "\\(dq",
        };
        unsigned char u = (unsigned char)c;

        if (u < AFZ_COUNT_OF(escapes) && escapes[u])
                fputs(escapes[u], out);
        else if (u == '\n' || u == '\t')
                fputc(' ', out);
        else
                fputc(c, out);
}

static void put_bytes(FILE *out, const char *text, size_t len)
{
        if (len > 0 && text[0] == '.')
                fputs("\\&", out);
        for (size_t i = 0; i < len; i++)
                put_char(out, text[i]);
}

static void put(FILE *out, const char *text)
{
        put_bytes(out, text, strlen(text));
}

/* font is B or I; roman stands outside. */
static void put_font(FILE *out, char font, const char *text)
{
        fprintf(out, "\\f%c", font);
        put(out, text);
        fputs("\\fR", out);
}

static bool ends_sentence(const char *word, size_t len)
{
        return len > 1 && strchr(".!?", word[len - 1]) != NULL;
}

/* Starts a source line after each sentence, as roff wants it to space them, and keeps lines short
 * for those who diff. */
static void put_text(FILE *out, const char *text)
{
        enum { LINE_MAX_BYTES = 76 };
        size_t line = 0;
        bool sentence_ended = false;

        while (*text) {
                size_t blanks = strspn(text, " \n");
                size_t len = strcspn(text + blanks, " \n");
                bool paragraph = strncmp(text, "\n\n", 2) == 0 && len > 0;

                if (paragraph)
                        fputs("\n.PP\n", out);
                else if (sentence_ended || line + len > LINE_MAX_BYTES)
                        fputc('\n', out);
                else if (line > 0 && len > 0)
                        fputc(' ', out);
                if (paragraph || sentence_ended || line + len > LINE_MAX_BYTES)
                        line = 0;
                put_bytes(out, text + blanks, len);
                line += len + 1;
                sentence_ended = ends_sentence(text + blanks, len);
                text += blanks + len;
        }
        fputc('\n', out);
}

static void put_option(FILE *out, const struct afz_option *row)
{
        char letter[] = "-x", notes[128];

        letter[1] = row->letter;
        fputs(".TP\n", out);
        if (row->letter) {
                put_font(out, 'B', letter);
                fputs(", ", out);
        }
        put_font(out, 'B', row->negatable ? "--[no-]" : "--");
        put_font(out, 'B', row->name);
        if (row->arg) {
                fputc('=', out);
                put_font(out, 'I', row->arg);
        }
        fputc('\n', out);
        put_text(out, row->help);
        afz_option_notes(row, notes, sizeof notes);
        if (notes[0]) {
                fputc('(', out);
                put(out, notes);
                fputs(")\n", out);
        }
}

static void put_options(FILE *out, const struct afz_option *rows)
{
        for (const struct afz_option *row = rows; row && row->name; row++)
                if (!row->hidden)
                        put_option(out, row);
}

static void put_examples(FILE *out, const struct afz_example *examples)
{
        for (const struct afz_example *at = examples; at && at->line; at++) {
                fputs(".TP\n", out);
                put_font(out, 'B', at->line);
                fputc('\n', out);
                put_text(out, at->help);
        }
}

static void put_usage(FILE *out, const struct afz_program *program,
                      const struct afz_command *command)
{
        char operands[128];

        afz_command_operands(command, operands, sizeof operands);
        put_font(out, 'B', program->name);
        fputc(' ', out);
        put_font(out, 'B', command->name);
        fputs(" [\\fIOPTION\\fR]...", out);
        if (operands[0]) {
                fputc(' ', out);
                put_font(out, 'I', operands);
        }
        fputc('\n', out);
}

static void put_synopsis(FILE *out, const struct afz_program *program)
{
        bool first = true;

        fputs(".SH SYNOPSIS\n", out);
        for (const struct afz_command *const *at = program->commands; *at; at++) {
                if ((*at)->hidden)
                        continue;
                if (!first)
                        fputs(".br\n", out);
                put_usage(out, program, *at);
                first = false;
        }
}

static void put_command(FILE *out, const struct afz_program *program,
                        const struct afz_command *command)
{
        fputs(".SS ", out);
        put(out, command->name);
        fputs(" \\(en ", out);
        put(out, command->summary);
        fputc('\n', out);
        put_usage(out, program, command);
        if (command->description) {
                fputs(".PP\n", out);
                put_text(out, command->description);
        }
        put_options(out, command->options);
        if (command->examples && command->examples->line) {
                fputs(".PP\nExamples:\n", out);
                put_examples(out, command->examples);
        }
}

static void put_notes(FILE *out, const char *heading, const struct afz_note *notes)
{
        if (!notes || !notes->term)
                return;
        fprintf(out, ".SH %s\n", heading);
        for (const struct afz_note *at = notes; at->term; at++) {
                fputs(".TP\n", out);
                put_font(out, 'B', at->term);
                fputc('\n', out);
                put_text(out, at->text);
        }
}

/* "systemd-oomd(8)" becomes bold name, roman section, as man pages have it. */
static void put_see_also(FILE *out, const char *const *pages)
{
        if (!pages || !*pages)
                return;
        fputs(".SH SEE ALSO\n", out);
        for (const char *const *at = pages; *at; at++) {
                size_t len = strcspn(*at, "(");

                fputs("\\fB", out);
                put_bytes(out, *at, len);
                fputs("\\fR", out);
                put(out, *at + len);
                fputs(at[1] ? ",\n" : "\n", out);
        }
}

static void put_title(FILE *out, const struct afz_program *program)
{
        fputs(".\\\" Made from the option rows by the program itself; changes here are lost.\n.TH ",
              out);
        for (const char *c = program->name; *c; c++)
                put_char(out, *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c);
        fprintf(out, " 1 %s \"", program->date[0] ? program->date : "\"\"");
        put(out, program->name);
        fputc(' ', out);
        put(out, program->version);
        fputs("\" \"User Commands\"\n.SH NAME\n", out);
        put(out, program->name);
        fputs(" \\- ", out);
        put(out, program->summary);
        fputc('\n', out);
}

int afz_manpage_write(FILE *out, const struct afz_program *program)
{
        put_title(out, program);
        put_synopsis(out, program);
        fputs(".SH DESCRIPTION\n", out);
        put_text(out, program->description);
        fputs(".SH OPTIONS\n", out);
        put_options(out, program->options);
        put_option(out, &afz_option_help);
        fputs(".SH COMMANDS\nEvery command also takes\n.BR \\-\\-help .\n", out);
        for (const struct afz_command *const *at = program->commands; *at; at++)
                if (!(*at)->hidden)
                        put_command(out, program, *at);
        put_notes(out, "EXIT STATUS", program->exit_status);
        put_notes(out, "ENVIRONMENT", program->environment);
        put_notes(out, "FILES", program->files);
        if (program->examples && program->examples->line) {
                fputs(".SH EXAMPLES\n", out);
                put_examples(out, program->examples);
        }
        put_see_also(out, program->see_also);
        return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}
