/* Tables of numbers as text: a line a sample. One pass over the lines keeps where every chunk
 * begins. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "csv_line.h"
#include "file.h"
#include "formats.h"
#include "rows.h"
#if AFZ_HAVE_JANSSON
#include <jansson.h>
#endif

enum {
        BLOCK_BYTES = 1 << 20, /* the first of these must hold the header and some lines */
        COLUMNS_MAX = 1 << 18, /* of a block of numbers, about all */
        ROW_BYTES_LEAST = 16,  /* so that a chunk of short lines has no more than 65536 of them */
};

struct csv {
        int fd;
        uint64_t bytes, data_at;
        char separator;
        bool is_double, is_label_whole;
        int64_t label; /* column; -1: none */
        uint64_t columns;
        struct afz_rows chunks; /* uint64_t: where each begins */
        locale_t point;
};

static bool is_csv(const char *path, bool is_folder, const uint8_t *head, uint64_t head_bytes)
{
        (void)head, (void)head_bytes;
        size_t n = strlen(path);
        return !is_folder && n > 4 &&
               (strcmp(path + n - 4, ".csv") == 0 || strcmp(path + n - 4, ".tsv") == 0);
}

/* ---- details: {"label": "price", "dtype": "f8"} ---- */

struct wanted {
        char label[128]; /* "": none */
        int64_t column;  /* instead of a name; -1 */
        bool is_double;
};

static int read_details(const char *details, struct wanted *ret, char why[AFZ_WHY_MAX])
{
        *ret = (struct wanted){.column = -1};
        if (!details)
                return 0;
#if AFZ_HAVE_JANSSON
        json_t *json = json_loads(details, JSON_REJECT_DUPLICATES, NULL);
        const json_t *label = json_object_get(json, "label"),
                     *type = json_object_get(json, "dtype");
        const char *name = json_string_value(label), *dtype = json_string_value(type);
        bool is_good = json_is_object(json) && json_object_size(json) == (size_t)(!!label + !!type);
        is_good &= !label || (name ? *name && strlen(name) < sizeof ret->label
                                   : json_is_integer(label) && json_integer_value(label) >= 0);
        is_good &= !type || (dtype && (strcmp(dtype, "f4") == 0 || strcmp(dtype, "f8") == 0));
        if (is_good) {
                if (name)
                        snprintf(ret->label, sizeof ret->label, "%s", name);
                else if (label)
                        ret->column = json_integer_value(label);
                ret->is_double = dtype && dtype[1] == '8';
        }
        json_decref(json);
        return is_good ? 0
                       : afz_why(why, -EINVAL,
                                 "details of a CSV are {\"label\": a column's name or number, "
                                 "\"dtype\": \"f4\" or \"f8\"}");
#else
        return afz_why_left_out(why, "a CSV with details", "jansson", "libjansson-dev");
#endif
}

/* ---- the first lines ---- */

static uint64_t count_cells(const struct csv *csv, const char *line, const char *end)
{
        struct afz_cell cell;
        uint64_t count = 0;
        while (afz_csv_cell(&line, end, csv->separator, &cell))
                count++;
        return count;
}

/* A line with a word in it, where numbers should be. */
static bool is_header(const struct csv *csv, const char *line, const char *end)
{
        struct afz_cell cell;
        double number;
        while (afz_csv_cell(&line, end, csv->separator, &cell))
                if (afz_csv_number(&cell, csv->point, &number) < 0)
                        return true;
        return false;
}

static int find_label(struct csv *csv, const struct wanted *wanted, bool has_header,
                      const char *line, const char *end, const char *path, char why[AFZ_WHY_MAX])
{
        struct afz_cell cell;
        csv->label = wanted->column;
        for (int64_t i = 0;
             *wanted->label && has_header && afz_csv_cell(&line, end, csv->separator, &cell); i++)
                if (cell.length == strlen(wanted->label) &&
                    memcmp(cell.text, wanted->label, cell.length) == 0)
                        csv->label = i;
        if ((*wanted->label && csv->label < 0) || csv->label >= (int64_t)csv->columns)
                return afz_why(why, -EINVAL,
                               "%.200s has %llu columns%s, and none is called \"%.100s\" (or has "
                               "that number)",
                               path, (unsigned long long)csv->columns,
                               has_header ? "" : " without names", wanted->label);
        if (csv->label >= 0 && csv->columns == 1)
                return afz_why(why, -EINVAL, "%.200s has nothing but labels", path);
        return 0;
}

/* Where in a line there is no number, for those who wonder. */
static int why_word(const struct csv *csv, const char *line, const char *end, const char *path,
                    char why[AFZ_WHY_MAX])
{
        struct afz_cell cell;
        double number;
        for (unsigned i = 1; afz_csv_cell(&line, end, csv->separator, &cell); i++)
                if (afz_csv_number(&cell, csv->point, &number) < 0)
                        return afz_why(why, -EINVAL,
                                       "%.200s: its column %u has \"%.*s\", which is no number: "
                                       "leave that column out, or turn its "
                                       "words into numbers first",
                                       path, i, cell.length < 60 ? (int)cell.length : 60,
                                       cell.text);
        return 0;
}

static bool is_whole(double value)
{
        return value == rint(value) && fabs(value) < 0x1p53;
}

/* Labels are classes if those of the first block are whole numbers. */
static bool are_labels_whole(const struct csv *csv, const char *at, const char *end)
{
        const char *line, *stop;
        bool is_any = false;
        while (afz_csv_line(&at, end, &line, &stop)) {
                struct afz_cell cell;
                double value;
                for (int64_t i = 0; afz_csv_cell(&line, stop, csv->separator, &cell); i++) {
                        if (i != csv->label)
                                continue;
                        if (afz_csv_number(&cell, csv->point, &value) < 0 || !is_whole(value))
                                return false;
                        is_any = true;
                }
        }
        return is_any;
}

/* Reads what can be told of a table by its beginning. */
static int look_at(struct afz_dataset *dataset, struct csv *csv, const struct wanted *wanted,
                   const char *text, uint64_t bytes, char why[AFZ_WHY_MAX])
{
        const char *at = text, *end = text + bytes, *line, *stop, *data;
        if (bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
                at += 3;
        data = at;
        if (bytes < csv->bytes) { /* the last line of the block may be cut */
                while (end > text && end[-1] != '\n')
                        end--;
                if (end == text)
                        return afz_why(why, -EFBIG, "%.200s: its first line has over %d bytes",
                                       dataset->path, BLOCK_BYTES);
        }
        if (!afz_csv_line(&at, end, &line, &stop))
                return afz_why(why, -ENODATA, "%.200s is empty", dataset->path);
        csv->separator = afz_csv_separator(line, stop);
        csv->columns = count_cells(csv, line, stop);
        csv->is_double = wanted->is_double;
        bool has_header = is_header(csv, line, stop);
        if (csv->columns > COLUMNS_MAX)
                return afz_why(why, -EFBIG, "%.200s has %llu columns; %d are the most",
                               dataset->path, (unsigned long long)csv->columns, COLUMNS_MAX);
        int r = find_label(csv, wanted, has_header, line, stop, dataset->path, why);
        if (r < 0)
                return r;
        if (has_header) {
                data = at;
                if (!afz_csv_line(&at, end, &line, &stop))
                        return afz_why(why, -ENODATA, "%.200s has no lines of numbers",
                                       dataset->path);
                r = why_word(csv, line, stop, dataset->path, why);
        }
        csv->data_at = (uint64_t)(data - text);
        csv->is_label_whole = csv->label >= 0 && are_labels_whole(csv, data, end);
        return r;
}

/* ---- the index ---- */

struct counting {
        uint64_t line_at; /* where the line began that is being read */
        uint64_t most;    /* bytes of a chunk */
        uint64_t lines;
        char last; /* byte */
};

static int line_done(struct afz_dataset *dataset, struct csv *csv, struct counting *c, uint64_t end,
                     uint64_t bytes)
{
        uint64_t begin = c->line_at;
        c->line_at = end;
        if (bytes == 0)
                return 0;
        if (c->lines++ % dataset->chunk_samples != 0)
                return 0;
        uint64_t *row = afz_rows_add(&csv->chunks, dataset);
        if (!row)
                return -ENOMEM;
        *row = begin;
        if (csv->chunks.count > 1) {
                uint64_t before = *(uint64_t *)afz_rows_at(&csv->chunks, csv->chunks.count - 2);
                c->most = begin - before > c->most ? begin - before : c->most;
        }
        return 0;
}

static int count_block(struct afz_dataset *dataset, struct csv *csv, struct counting *c,
                       const char *text, uint64_t bytes, uint64_t at)
{
        const char *from = text, *end = text + bytes;
        while (from < end) {
                const char *stop = memchr(from, '\n', (size_t)(end - from));
                if (!stop)
                        break;
                uint64_t line_end = at + (uint64_t)(stop - text), length = line_end - c->line_at;
                char before = stop > text ? stop[-1] : c->last;
                length -= length > 0 && before == '\r';
                int r = line_done(dataset, csv, c, line_end + 1, length);
                if (r < 0)
                        return r;
                from = stop + 1;
        }
        c->last = text[bytes - 1];
        return 0;
}

static int make_index(struct afz_dataset *dataset, struct csv *csv, char *block)
{
        struct counting c = {.line_at = csv->data_at};
        for (uint64_t at = csv->data_at; at < csv->bytes;) {
                uint64_t left = csv->bytes - at, n = left < BLOCK_BYTES ? left : BLOCK_BYTES;
                int r = afz_dataset_read(csv->fd, block, n, at, NULL);
                if (r == 0)
                        r = count_block(dataset, csv, &c, block, n, at);
                if (r < 0)
                        return r;
                at += n;
        }
        uint64_t length = csv->bytes - c.line_at;
        int r = line_done(dataset, csv, &c, csv->bytes, length - (length > 0 && c.last == '\r'));
        if (r < 0)
                return r;
        dataset->samples = c.lines;
        if (c.lines > 0) {
                uint64_t last =
                        csv->bytes - *(uint64_t *)afz_rows_at(&csv->chunks, csv->chunks.count - 1);
                dataset->raw_bytes = last > c.most ? last : c.most;
        }
        return 0;
}

static void describe(struct afz_dataset *dataset, const struct csv *csv)
{
        enum afz_dtype type = csv->is_double ? AFZ_F64 : AFZ_F32;
        bool has_label = csv->label >= 0;
        dataset->field[0] = (struct afz_field){.name = "x", .dtype = type, .dimensions = 1};
        dataset->field[0].shape[0] = csv->columns - has_label;
        dataset->field[0].bytes = dataset->field[0].shape[0] * afz_dtype_bytes(type);
        dataset->field[1] =
                (struct afz_field){.name = "label", .dtype = csv->is_label_whole ? AFZ_I64 : type};
        dataset->field[1].bytes = afz_dtype_bytes(dataset->field[1].dtype);
        dataset->fields = 1 + has_label;
}

static int open_file(struct afz_dataset *dataset, struct csv *csv,
                     const struct afz_loader_options *options, char *block, char why[AFZ_WHY_MAX])
{
        struct wanted wanted;
        uint64_t n = csv->bytes < BLOCK_BYTES ? csv->bytes : BLOCK_BYTES;
        int r = read_details(options->details, &wanted, why);
        if (r < 0)
                return r;
        r = afz_dataset_read(csv->fd, block, n, 0, NULL);
        if (r < 0)
                return afz_why(why, r, "%.250s: %s", dataset->path, afz_error_text(r));
        r = look_at(dataset, csv, &wanted, block, n, why);
        if (r < 0)
                return r;
        describe(dataset, csv);
        uint64_t row = dataset->field[0].bytes, lines = 0;
        for (uint64_t i = csv->data_at; i < n; i++)
                lines += block[i] == '\n';
        uint64_t text = (n - csv->data_at) / (lines ? lines : 1);
        row = text > row ? text : row;
        dataset->chunk_samples = afz_chunk_for(row < ROW_BYTES_LEAST ? ROW_BYTES_LEAST : row,
                                               UINT64_MAX, options->budget_bytes);
        r = make_index(dataset, csv, block);
        return r < 0 ? afz_why(why, r, "%.250s: %s", dataset->path, afz_error_text(r)) : 0;
}

static int csv_open(struct afz_dataset *dataset, const struct afz_loader_options *options,
                    char why[AFZ_WHY_MAX])
{
        struct csv *csv = afz_index_take(dataset, 1, sizeof *csv);
        if (!csv)
                return afz_why(why, -ENOMEM, "%.250s: %s", dataset->path, afz_error_text(-ENOMEM));
        csv->fd = afz_file_open(AT_FDCWD, dataset->path, &csv->bytes);
        if (csv->fd < 0)
                return afz_why(why, csv->fd, "%.250s: %s", dataset->path, afz_error_text(csv->fd));
        dataset->own = csv;
        csv->chunks.each = sizeof(uint64_t);
        csv->point = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        char *block = csv->point ? malloc(BLOCK_BYTES) : NULL;
        int r = block ? open_file(dataset, csv, options, block, why)
                      : afz_why(why, -ENOMEM, "no memory is left");
        free(block);
        return r;
}

static void csv_close(struct afz_dataset *dataset)
{
        struct csv *csv = dataset->own;
        if (csv) {
                close(csv->fd);
                if (csv->point)
                        freelocale(csv->point);
        }
        dataset->own = NULL;
}

/* ---- loading ---- */

static void put(uint8_t *to, bool is_double, double value)
{
        float single = (float)value;
        memcpy(to, is_double ? (void *)&value : (void *)&single,
               is_double ? sizeof value : sizeof single);
}

static int put_label(const struct csv *csv, uint8_t *to, double value)
{
        if (!csv->is_label_whole) {
                put(to, csv->is_double, value);
                return 0;
        }
        if (!is_whole(value))
                return -ERANGE;
        int64_t whole = (int64_t)value;
        memcpy(to, &whole, sizeof whole);
        return 0;
}

/* -EINVAL: a word; -EMSGSIZE: too few cells or too many; -ERANGE: a label that is no class. */
static int put_line(const struct afz_dataset *dataset, const struct afz_load *load, uint32_t sample,
                    const char *line, const char *end)
{
        const struct csv *csv = dataset->own;
        uint64_t each = afz_dtype_bytes(dataset->field[0].dtype);
        uint8_t *to = load->field[0] + sample * dataset->field[0].bytes;
        struct afz_cell cell;
        double value;
        uint64_t i = 0;
        for (; afz_csv_cell(&line, end, csv->separator, &cell); i++) {
                int r = i >= csv->columns ? -EMSGSIZE : afz_csv_number(&cell, csv->point, &value);
                if (r == 0 && (int64_t)i == csv->label) {
                        r = put_label(csv, load->field[1] + sample * dataset->field[1].bytes,
                                      value);
                } else if (r == 0) {
                        put(to, csv->is_double, value);
                        to += each;
                }
                if (r < 0)
                        return r;
        }
        return i == csv->columns ? 0 : -EMSGSIZE;
}

static const char *line_error(int error)
{
        switch (error) {
        case -EINVAL:
                return "it has a word where a number should be";
        case -EMSGSIZE:
                return "it has more or fewer columns than the first line";
        case -ERANGE:
                return "its label is not a whole number, as the first ones are";
        default:
                return afz_error_text(error);
        }
}

static int csv_load(struct afz_dataset *dataset, const struct afz_load *load,
                    struct afz_scratch *scratch, char why[AFZ_WHY_MAX])
{
        const struct csv *csv = dataset->own;
        uint64_t chunk = load->first / dataset->chunk_samples,
                 skip = load->first % dataset->chunk_samples;
        uint64_t from = *(uint64_t *)afz_rows_at(&csv->chunks, chunk);
        uint64_t to = chunk + 1 < csv->chunks.count
                              ? *(uint64_t *)afz_rows_at(&csv->chunks, chunk + 1)
                              : csv->bytes;
        const char *at = (const char *)scratch->raw, *end = at + (to - from), *line, *stop;
        int first_error =
                to - from > scratch->raw_bytes
                        ? -EINVAL
                        : afz_dataset_read(csv->fd, scratch->raw, to - from, from, scratch);
        if (first_error < 0) {
                afz_why(why, 0, "%.250s: lines from %llu on cannot be read: %s", dataset->path,
                        (unsigned long long)load->first, afz_error_text(first_error));
                return afz_load_bad(load, 0, load->count);
        }
        for (; skip > 0 && afz_csv_line(&at, end, &line, &stop); skip--)
                ;
        for (uint32_t i = 0; i < load->count; i++) {
                int r = afz_csv_line(&at, end, &line, &stop)
                                ? put_line(dataset, load, i, line, stop)
                                : -ENODATA;
                if (r == 0)
                        continue;
                afz_load_bad(load, i, 1);
                if (first_error == 0)
                        afz_why(why, 0, "%.250s: line %llu of its numbers: %s", dataset->path,
                                (unsigned long long)(load->first + i + 1), line_error(r));
                first_error = r;
        }
        return 0;
}

const struct afz_format afz_format_csv = {
        .name = "csv",
        .about = "a table of numbers as text, with commas, semicolons or tabs",
        .is_it = is_csv,
        .open = csv_open,
        .close = csv_close,
        .load = csv_load,
};
