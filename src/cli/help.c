#include "help.h"

#include <errno.h>
#include <string.h>

enum {
        LABEL_INDENT = 2,   /* before an option or a command */
        LABEL_MAX = 26,     /* a longer label gets a line of its own */
        LABEL_GAP = 2,      /* between a label and its text */
        EXAMPLE_INDENT = 6, /* before what an example does */
        LABEL_CAP = 128,
};

/* Where the pen is. Words are put with put_word() and go to the next line when they do not fit. */
struct pen {
        FILE *out;
        int width;
        int indent; /* where a wrapped line starts */
        int column;
};

static int columns_of(const char *text, size_t len)
{
        int columns = 0;

        for (size_t i = 0; i < len; i++)
                columns += ((unsigned char)text[i] & 0xC0) != 0x80;
        return columns;
}

static void new_line(struct pen *pen)
{
        fputc('\n', pen->out);
        pen->column = 0;
}

static void move_to(struct pen *pen, int column)
{
        fprintf(pen->out, "%*s", column - pen->column, "");
        pen->column = column;
}

/* Puts text as it stands, without wrapping. */
static void put(struct pen *pen, const char *text)
{
        fputs(text, pen->out);
        pen->column += columns_of(text, strlen(text));
}

static void put_word(struct pen *pen, const char *word, size_t len)
{
        int columns = columns_of(word, len);
        bool blank_before = pen->column > pen->indent;

        if (blank_before && pen->column + 1 + columns > pen->width) {
                new_line(pen);
                blank_before = false;
        }
        if (blank_before)
                put(pen, " ");
        else if (pen->column < pen->indent)
                move_to(pen, pen->indent);
        fwrite(word, 1, len, pen->out);
        pen->column += columns;
}

static void put_wrapped(struct pen *pen, const char *text)
{
        while (*text) {
                size_t blanks = strspn(text, " \n");
                size_t len = strcspn(text + blanks, " \n");

                if (blanks >= 2 && strncmp(text, "\n\n", 2) == 0 && len > 0) {
                        new_line(pen);
                        new_line(pen);
                }
                if (len > 0)
                        put_word(pen, text + blanks, len);
                text += blanks + len;
        }
}

/* A summary has no capital and no full stop, so that it can stand in a list; here it is a sentence.
 */
static void put_summary(struct pen *pen, const char *summary)
{
        char sentence[256];

        snprintf(sentence, sizeof sentence, "%s.", summary);
        if (sentence[0] >= 'a' && sentence[0] <= 'z')
                sentence[0] = (char)(sentence[0] - 'a' + 'A');
        put_wrapped(pen, sentence);
        new_line(pen);
}

static void put_heading(struct pen *pen, const char *heading)
{
        new_line(pen);
        put(pen, heading);
        new_line(pen);
}

/* A label on the left, its text wrapped on the right from text_column on. */
static void put_entry(struct pen *pen, const char *label, const char *text, const char *notes,
                      int text_column)
{
        char in_brackets[LABEL_CAP];

        move_to(pen, LABEL_INDENT);
        put(pen, label);
        if (pen->column + LABEL_GAP > text_column)
                new_line(pen);
        move_to(pen, text_column);
        pen->indent = text_column;
        put_wrapped(pen, text);
        if (notes[0]) {
                snprintf(in_brackets, sizeof in_brackets, "(%s)", notes);
                put_wrapped(pen, in_brackets);
        }
        pen->indent = 0;
        new_line(pen);
}

static void option_label(const struct afz_option *row, char *buf, size_t cap)
{
        char letter[] = "-x, ";

        letter[1] = row->letter;
        snprintf(buf, cap, "%s--%s%s%s%s", row->letter ? letter : "    ",
                 row->negatable ? "[no-]" : "", row->name, row->arg ? "=" : "",
                 row->arg ? row->arg : "");
}

/* Labels that leave at least half of the line to their texts set the column; a longer one gets a
 * line of its own. */
static int widest_label(const struct pen *pen, const char *label, int widest_so_far)
{
        int columns = columns_of(label, strlen(label));
        int most = pen->width / 2 - LABEL_INDENT - LABEL_GAP;

        if (columns > most || columns > LABEL_MAX || columns < widest_so_far)
                return widest_so_far;
        return columns;
}

static void put_option(struct pen *pen, const struct afz_option *row, int text_column)
{
        char label[LABEL_CAP], notes[LABEL_CAP];

        option_label(row, label, sizeof label);
        afz_option_notes(row, notes, sizeof notes);
        put_entry(pen, label, row->help, notes, text_column);
}

static void put_options(struct pen *pen, const struct afz_option *rows)
{
        char label[LABEL_CAP];
        int widest = 0;

        option_label(&afz_option_help, label, sizeof label);
        widest = widest_label(pen, label, widest);
        for (const struct afz_option *row = rows; row && row->name; row++) {
                option_label(row, label, sizeof label);
                if (!row->hidden)
                        widest = widest_label(pen, label, widest);
        }
        put_heading(pen, "Options:");
        for (const struct afz_option *row = rows; row && row->name; row++)
                if (!row->hidden)
                        put_option(pen, row, LABEL_INDENT + widest + LABEL_GAP);
        put_option(pen, &afz_option_help, LABEL_INDENT + widest + LABEL_GAP);
}

static void put_commands(struct pen *pen, const struct afz_program *program)
{
        int widest = 0;

        for (const struct afz_command *const *at = program->commands; *at; at++)
                if (!(*at)->hidden)
                        widest = widest_label(pen, (*at)->name, widest);
        put_heading(pen, "Commands:");
        for (const struct afz_command *const *at = program->commands; *at; at++)
                if (!(*at)->hidden)
                        put_entry(pen, (*at)->name, (*at)->summary, "",
                                  LABEL_INDENT + widest + LABEL_GAP);
}

static void put_examples(struct pen *pen, const struct afz_example *examples)
{
        if (!examples || !examples->line)
                return;
        put_heading(pen, "Examples:");
        for (const struct afz_example *at = examples; at->line; at++) {
                move_to(pen, LABEL_INDENT);
                put(pen, at->line);
                new_line(pen);
                pen->indent = EXAMPLE_INDENT;
                put_wrapped(pen, at->help);
                pen->indent = 0;
                new_line(pen);
        }
}

static struct pen pen_new(FILE *out, int width)
{
        if (width < AFZ_HELP_WIDTH_MIN)
                width = AFZ_HELP_WIDTH_MIN;
        if (width > AFZ_HELP_WIDTH_MAX)
                width = AFZ_HELP_WIDTH_MAX;
        return (struct pen){.out = out, .width = width};
}

static int finish(FILE *out)
{
        return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}

int afz_help_program(FILE *out, const struct afz_program *program, int width)
{
        struct pen pen = pen_new(out, width);

        fprintf(out, "Usage: %s COMMAND [OPTION]... [ARGUMENT]...\n\n", program->name);
        put_summary(&pen, program->summary);
        put_commands(&pen, program);
        put_options(&pen, program->options);
        put_examples(&pen, program->examples);
        fprintf(out, "\n'%s COMMAND --help' tells more about a command.\n", program->name);
        return finish(out);
}

int afz_help_command(FILE *out, const struct afz_program *program,
                     const struct afz_command *command, int width)
{
        struct pen pen = pen_new(out, width);
        char operands[LABEL_CAP];

        afz_command_operands(command, operands, sizeof operands);
        fprintf(out, "Usage: %s %s [OPTION]...%s%s\n\n", program->name, command->name,
                operands[0] ? " " : "", operands);
        put_summary(&pen, command->summary);
        if (command->description) {
                new_line(&pen);
                put_wrapped(&pen, command->description);
                new_line(&pen);
        }
        put_options(&pen, command->options);
        put_examples(&pen, command->examples);
        return finish(out);
}
