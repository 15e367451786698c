/* Data that the program reads itself and brings as Arrow streams: Parquet, by pyarrow. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "arrow_abi.h"
#include "arrow_parts.h"
#include "arrow_take.h"
#include "file.h"
#include "formats.h"
#include "now.h"
#include "parts.h"

#define NS_A_SECOND UINT64_C(1000000000)

enum {
        NAME_SHOWN = 300,
        BLOCK_BYTES = 512, /* that getrusage() counts by */
};

struct arrow {
        struct afz_source source; /* what it points to is the program's */
        const struct afz_arrow_part *part;
        pthread_mutex_t lock;
        pthread_cond_t quiet;
        uint32_t calls; /* into the program, now */
        bool is_detached;
};

static bool is_parquet(const char *path, bool is_folder, const uint8_t *head, uint64_t head_bytes)
{
        (void)path;
        return !is_folder && head_bytes >= 4 && memcmp(head, "PAR1", 4) == 0;
}

/* ---- opening ---- */

/* The columns of a field have to fill it. */
static bool is_filled(const struct afz_source *source, uint32_t field)
{
        const struct afz_field *f = &source->field[field];
        uint64_t has = 0, wants, end;
        if (afz_shape_bytes(f->shape, f->dimensions, 1, &wants) < 0)
                return false;
        for (uint32_t i = 0; i < source->columns; i++) {
                const struct afz_source_column *c = &source->column[i];
                if (c->field != field)
                        continue;
                if (__builtin_add_overflow(c->at, c->numbers, &end) || end > wants)
                        return false;
                has += c->numbers;
        }
        return has == wants;
}

static bool is_sound(const struct afz_source *source)
{
        if (!source->open || !source->parts || !source->part_rows || !source->field ||
            !source->column || source->fields == 0 || source->fields > AFZ_FIELDS_MAX ||
            source->columns == 0)
                return false;
        for (uint32_t i = 0; i < source->columns; i++)
                if (!source->column[i].name || source->column[i].field >= source->fields)
                        return false;
        for (uint32_t i = 0; i < source->fields; i++)
                if (!is_filled(source, i))
                        return false;
        return true;
}

/* Whether samples may be numbered as it suits. */
static bool is_number_free(const struct afz_loader_options *options)
{
        return options->shuffle != AFZ_SHUFFLE_NONE && options->path_count <= 1 &&
               options->start == 0 && options->stop == 0 && !options->subset && !options->weights;
}

static int make_parts(struct afz_dataset *dataset, const struct afz_loader_options *options,
                      struct arrow *own, char why[AFZ_WHY_MAX])
{
        const struct afz_source *source = &own->source;
        uint64_t common = afz_arrow_common(source->part_rows, source->parts);
        struct afz_arrow_part *part = afz_index_take(dataset, source->parts, sizeof *part);
        if (!part)
                return afz_why(why, -ENOSPC,
                               "%.300s: where its %llu row groups are does not fit into the budget",
                               dataset->path, (unsigned long long)source->parts);
        int r = afz_arrow_parts_make(source->part_rows, source->parts,
                                     is_number_free(options) ? common : 0, part, &dataset->samples);
        if (r < 0)
                return afz_why(why, r, "%.300s: row groups of no rows, or of too many",
                               dataset->path);
        own->part = part;
        /* Whole parts, and several where they are small. */
        uint64_t rows = common ? common : (dataset->samples - 1) / source->parts + 1;
        uint64_t bytes = 0, each;
        for (uint32_t i = 0; i < dataset->fields; i++)
                if (afz_shape_bytes(dataset->field[i].shape, dataset->field[i].dimensions,
                                    afz_dtype_bytes(dataset->field[i].dtype), &each) < 0 ||
                    __builtin_add_overflow(bytes, each, &bytes))
                        return afz_why(why, -EOVERFLOW,
                                       "%.300s: samples that are too large to be true",
                                       dataset->path);
        uint64_t good = afz_chunk_for(bytes, dataset->samples, options->budget_bytes);
        dataset->chunk_samples = good > rows ? good / rows * rows : rows;
        return 0;
}

static int arrow_open(struct afz_dataset *dataset, const struct afz_loader_options *options,
                      char why[AFZ_WHY_MAX])
{
        const struct afz_source *source = options->source;
        if (!source)
                return afz_why(why, -EINVAL,
                               "%.300s is Parquet, which is read by pyarrow: give it to "
                               "antifreeze.Loader in Python, alone or with labels",
                               dataset->path);
        if (!is_sound(source))
                return afz_why(why, -EINVAL, "%.300s: its source does not hold together",
                               dataset->path);
        struct arrow *own = afz_index_take(dataset, 1, sizeof *own);
        if (!own || __builtin_add_overflow(dataset->index_bytes, source->index_bytes,
                                           &dataset->index_bytes))
                return afz_why(why, -ENOSPC, "%.300s: the budget is too small", dataset->path);
        own->source = *source;
        dataset->fields = source->fields;
        memcpy(dataset->field, source->field, source->fields * sizeof *source->field);
        dataset->heap_bytes = source->heap_bytes;
        dataset->decode_bytes = source->columns * sizeof(struct afz_arrow_column);
        int r = make_parts(dataset, options, own, why);
        if (r < 0)
                return r;
        pthread_mutex_init(&own->lock, NULL);
        pthread_cond_init(&own->quiet, NULL);
        dataset->own = own;
        return 0;
}

static void arrow_close(struct afz_dataset *dataset)
{
        struct arrow *own = dataset->own;
        if (!own)
                return;
        pthread_mutex_destroy(&own->lock);
        pthread_cond_destroy(&own->quiet);
        dataset->own = NULL;
}

/* ---- the program may go ---- */

static bool enter(struct arrow *own)
{
        pthread_mutex_lock(&own->lock);
        bool may = !own->is_detached;
        own->calls += may;
        pthread_mutex_unlock(&own->lock);
        return may;
}

static void leave(struct arrow *own)
{
        pthread_mutex_lock(&own->lock);
        if (--own->calls == 0)
                pthread_cond_broadcast(&own->quiet);
        pthread_mutex_unlock(&own->lock);
}

static void detach(struct arrow *own)
{
        pthread_mutex_lock(&own->lock);
        own->is_detached = true;
        while (own->calls > 0)
                pthread_cond_wait(&own->quiet, &own->lock);
        pthread_mutex_unlock(&own->lock);
}

void afz_loader_detach(struct afz_loader *loader)
{
        if (!loader || loader->pid != getpid()) /* the calls are the parent's */
                return;
        for (uint32_t i = 0; i < loader->datasets; i++)
                if (loader->dataset[i].format == &afz_format_arrow)
                        detach(loader->dataset[i].own);
}

/* ---- loading ---- */

/* Some rows of a part, on their way from a stream to a load. */
struct taking {
        const struct afz_dataset *dataset;
        const struct afz_source *source;
        const struct afz_arrow_part *part;
        struct afz_arrow_column *column;
        const struct afz_load *load;
        uint64_t from, count; /* rows of the part */
        uint64_t to;          /* row of the load */
        char name[NAME_SHOWN];
        char *why;
};

/* The other side says more than a person wants to know: what kind of error it was before the part's
 * name, and a stack of calls behind the sentence. */
static int failed(struct afz_arrow_stream *stream, int error, const struct taking *t)
{
        const char *says = stream->get_last_error ? stream->get_last_error(stream) : NULL;
        error = error > 0 ? -error : -EIO;
        if (!says || !*says)
                return afz_why(t->why, error, "%s: %s", t->name, strerror(-error));
        const char *named = strstr(says, t->name);
        if (named)
                afz_why(t->why, error, "%s", named);
        else
                afz_why(t->why, error, "%s: %s", t->name, says);
        t->why[strcspn(t->why, "\n")] = '\0';
        char *detail = strstr(t->why, ". Detail: ");
        if (detail)
                *detail = '\0';
        return error;
}

static int take_batch(const struct afz_arrow_array *batch, const struct taking *t, uint64_t seen)
{
        const uint32_t columns = t->source->columns;
        struct afz_arrow_absent absent = {0};
        const char *wrong = afz_arrow_check(batch, t->column, columns);
        if (wrong)
                return afz_why(t->why, -EBADMSG, "%s: %s", t->name, wrong);
        uint64_t rows = (uint64_t)batch->length, left = t->part->rows - seen;
        if (rows == 0 || rows > left)
                return afz_why(t->why, -EBADMSG, "%s: it has %s rows than were told", t->name,
                               rows ? "more" : "fewer");
        uint64_t from = seen < t->from ? t->from : seen;
        uint64_t end = seen + rows < t->from + t->count ? seen + rows : t->from + t->count;
        if (from >= end)
                return 0;
        afz_arrow_take(batch, t->column, columns, t->source->is_null_nan, from - seen, t->load,
                       t->to + from - t->from, end - from, &absent);
        if (absent.column && !*t->why)
                afz_why(t->why, 0,
                        "%s: row %llu has nothing (null) in column %.100s; fill it, leave it out "
                        "with on_error=\"skip\", or, of numbers with a point, "
                        "details={\"nulls\": \"nan\"}",
                        t->name, (unsigned long long)(seen + absent.row), absent.column);
        return 0;
}

static int take_batches(struct afz_arrow_stream *stream, const struct taking *t)
{
        for (uint64_t seen = 0; seen < t->from + t->count || seen == t->part->rows;) {
                struct afz_arrow_array batch = {0};
                int r = stream->get_next(stream, &batch);
                if (r != 0)
                        return failed(stream, r, t);
                if (!batch.release)
                        return seen == t->part->rows
                                       ? 0
                                       : afz_why(t->why, -EBADMSG,
                                                 "%s: it has fewer rows than were told", t->name);
                r = take_batch(&batch, t, seen);
                seen += r == 0 ? (uint64_t)batch.length : 0;
                batch.release(&batch);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int take_stream(struct afz_arrow_stream *stream, const struct taking *t)
{
        struct afz_arrow_schema schema = {0};
        if (!stream->get_schema || !stream->get_next)
                return afz_why(t->why, -EBADMSG, "%s: what came is no stream", t->name);
        int r = stream->get_schema(stream, &schema);
        if (r != 0)
                return failed(stream, r, t);
        if (!schema.release)
                return afz_why(t->why, -EBADMSG, "%s: what came has no schema", t->name);
        r = afz_arrow_find(&schema, t->source, t->dataset->field, t->name, t->column, t->why);
        schema.release(&schema);
        return r < 0 ? r : take_batches(stream, t);
}

static int take_part(struct taking *t)
{
        struct afz_arrow_stream stream = {0};
        char words[AFZ_WHY_MAX] = "";
        int r = t->source->open(t->source->own, t->part->number, &stream, words);
        words[AFZ_WHY_MAX - 1] = '\0';
        if (r < 0)
                return afz_why(t->why, r, "%s", *words ? words : strerror(-r));
        snprintf(t->name, sizeof t->name, "%.*s", NAME_SHOWN - 1, words);
        if (!stream.release)
                return afz_why(t->why, -EBADMSG, "%s: nothing came", t->name);
        r = take_stream(&stream, t);
        stream.release(&stream);
        return r;
}

/* What the program does in its calls is not seen. But a thread that had to read from a disk has not
 * computed meanwhile. */
struct effort {
        uint64_t wall_ns, busy_ns, disk_bytes;
};

static struct effort effort_now(void)
{
        struct rusage usage = {0};
        struct timespec busy = {0};
        getrusage(RUSAGE_THREAD, &usage);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &busy);
        return (struct effort){
                .wall_ns = afz_now_ns(),
                .busy_ns = (uint64_t)busy.tv_sec * NS_A_SECOND + (uint64_t)busy.tv_nsec,
                .disk_bytes = (uint64_t)usage.ru_inblock * BLOCK_BYTES,
        };
}

static void count_reads(const struct effort *before, struct afz_scratch *scratch)
{
        struct effort now = effort_now();
        uint64_t wall_ns = now.wall_ns - before->wall_ns, busy_ns = now.busy_ns - before->busy_ns;
        if (now.disk_bytes == before->disk_bytes)
                return;
        scratch->read_bytes += now.disk_bytes - before->disk_bytes;
        scratch->read_ns += wall_ns > busy_ns ? wall_ns - busy_ns : 0;
}

static int arrow_load(struct afz_dataset *dataset, const struct afz_load *load,
                      struct afz_scratch *scratch, char why[AFZ_WHY_MAX])
{
        struct arrow *own = dataset->own;
        if (!enter(own))
                return afz_why(why, -ESHUTDOWN, "%.300s: the program that reads it ends",
                               dataset->path);
        struct effort before = effort_now();
        for (uint64_t done = 0; done < load->count;) {
                uint64_t sample = load->first + done;
                const struct afz_arrow_part *part =
                        afz_arrow_part_of(own->part, own->source.parts, sample);
                char other[AFZ_WHY_MAX] = "";
                struct taking t = {
                        .dataset = dataset,
                        .source = &own->source,
                        .part = part,
                        .column = (struct afz_arrow_column *)(void *)scratch->decode,
                        .load = load,
                        .from = sample - part->first,
                        .to = done,
                        .why = *why ? other : why,
                };
                uint64_t left = part->rows - t.from;
                t.count = left < load->count - done ? left : load->count - done;
                if (take_part(&t) < 0)
                        afz_load_bad(load, (uint32_t)done, (uint32_t)t.count);
                done += t.count;
        }
        count_reads(&before, scratch);
        leave(own);
        return 0;
}

const struct afz_format afz_format_arrow = {
        .name = "arrow",
        .said = "parquet",
        .about = "what the program reads itself: Parquet by pyarrow",
        .is_it = is_parquet,
        .open = arrow_open,
        .close = arrow_close,
        .load = arrow_load,
};
