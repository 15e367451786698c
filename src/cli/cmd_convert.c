/* convert: checks what is asked for and lets antifreeze-convert do it. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "config.h"
#include "find_part.h"
#include "quantity.h"

#define MIB (UINT64_C(1) << 20)

enum {
        ARGUMENTS = 24,
        SIDE_MOST = 65535,
        LOOK_MOST = 1000, /* names of a folder: it may as well be a million pictures */
};

struct convert_options {
        const char *labels, *format, *details, *resize, *mean, *deviation, *python;
        uint64_t budget_bytes, chunk_bytes, shard_bytes, level;
        bool is_float, dry_run, force, json, quiet;
};

/* What the other program is given: name=value, checked. */
struct arguments {
        char *argv[ARGUMENTS + 1];
        int argc;
        bool is_short; /* of memory */
};

static void add_text(struct arguments *to, const char *name, const char *value)
{
        if (value && asprintf(&to->argv[to->argc], "%s=%s", name, value) < 0)
                to->is_short = true;
        else if (value)
                to->argc++;
}

static void add_number(struct arguments *to, const char *name, uint64_t value)
{
        char text[24];
        snprintf(text, sizeof text, "%" PRIu64, value);
        add_text(to, name, text);
}

/* "224" or "224x320": height, width. */
static int parse_resize(const char *text, uint64_t *ret_height, uint64_t *ret_width)
{
        char height[16] = "", width[16] = "";
        const char *x = strchr(text, 'x');
        size_t length = x ? (size_t)(x - text) : strlen(text);
        if (length >= sizeof height || (x && strlen(x + 1) >= sizeof width))
                return -EINVAL;
        memcpy(height, text, length);
        snprintf(width, sizeof width, "%s", x ? x + 1 : height);
        if (afz_parse_u64(height, ret_height) < 0 || afz_parse_u64(width, ret_width) < 0 ||
            *ret_height == 0 || *ret_width == 0 || *ret_height > SIDE_MOST ||
            *ret_width > SIDE_MOST)
                return -EINVAL;
        return 0;
}

static bool are_three(const char *text)
{
        float number[3];
        int end = 0;
        return !text ||
               (sscanf(text, "%f,%f,%f%n", &number[0], &number[1], &number[2], &end) == 3 &&
                text[end] == '\0' && isfinite(number[0]) && isfinite(number[1]) &&
                isfinite(number[2]));
}

static int check(const struct convert_options *o)
{
        if (o->shard_bytes < o->chunk_bytes)
                return afz_fail(AFZ_EXIT_USAGE, "convert: --shard is smaller than --chunk");
        if (!are_three(o->mean) || !are_three(o->deviation))
                return afz_fail(AFZ_EXIT_USAGE, "convert: --mean and --deviation are three numbers "
                                                "for red, green and blue: 0.485,0.456,0.406");
        if ((o->mean || o->deviation) && !o->is_float)
                return afz_fail(AFZ_EXIT_USAGE, "convert: --mean and --deviation go with --float");
        return 0;
}

/* As convert/main.c reads them. */
static void give(struct arguments *to, const struct afz_invocation *invocation, uint64_t height,
                 uint64_t width)
{
        const struct convert_options *o = invocation->options;
        add_text(to, "source", invocation->argv[0]);
        add_text(to, "target", invocation->argv[1]);
        add_text(to, "labels", o->labels);
        add_text(to, "format", o->format);
        add_text(to, "details", o->details);
        add_text(to, "mean", o->mean);
        add_text(to, "deviation", o->deviation);
        add_number(to, "budget", o->budget_bytes);
        add_number(to, "chunk", o->chunk_bytes);
        add_number(to, "shard", o->shard_bytes);
        add_number(to, "level", o->level);
        add_number(to, "height", height);
        add_number(to, "width", width);
        add_number(to, "float", o->is_float);
        add_number(to, "dry-run", o->dry_run);
        add_number(to, "force", o->force);
        add_number(to, "json", o->json);
        add_number(to, "quiet", o->quiet);
}

/* ---- Parquet, which pyarrow reads ---- */

static bool ends_like_parquet(const char *name)
{
        static const char *const endings[] = {".parquet", ".parq", ".pq"};
        size_t length = strlen(name);
        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
                size_t end = strlen(endings[i]);
                if (length > end && strcmp(name + length - end, endings[i]) == 0)
                        return true;
        }
        return false;
}

static bool is_parquet(const char *path, const char *format)
{
        if (format)
                return strcmp(format, "parquet") == 0;
        if (ends_like_parquet(path))
                return true;
        DIR *dir = opendir(path);
        struct dirent *entry;
        bool is = false;
        for (int i = 0; dir && !is && i < LOOK_MOST && (entry = readdir(dir)); i++)
                is = !strchr("._", entry->d_name[0]) && ends_like_parquet(entry->d_name);
        if (dir)
                closedir(dir);
        return is;
}

/* Up by so many folders. */
static void cut_path(char *path, int up)
{
        for (char *slash; up > 0 && (slash = strrchr(path, '/')); up--)
                *slash = '\0';
}

/* Puts Python in the program's place: it reads, and the rest is the same code as of the program. */
static int run_python(const char *python, struct arguments *to, char *converter)
{
        static const char boot[] = "import sys; sys.path[0] = sys.argv[1]; import antifreeze; "
                                   "from _antifreeze.feed.convert import main; main(*sys.argv[2:])";
        char package[1024], library[1100], *argv[ARGUMENTS + 8];
        int n = 0;
        cut_path(converter, 1);
        snprintf(library, sizeof library, "%s/libantifreeze-convert.so", converter);
        if (access(library, R_OK) < 0)
                return afz_fail(AFZ_EXIT_OWN, "convert: %s: %s; Parquet needs it", library,
                                strerror(errno));
        if (afz_find_part(&afz_part_agent, package, sizeof package) < 0)
                return afz_fail(AFZ_EXIT_OWN, "convert: the Python package antifreeze is not "
                                              "installed beside this program; Parquet needs it");
        cut_path(package, 3); /* antifreeze/enter/sitecustomize.py */
        char *const first[] = {(char *)python, (char *)"-c", (char *)boot, package, library};
        for (size_t i = 0; i < sizeof first / sizeof *first; i++)
                argv[n++] = first[i];
        for (int i = 1; i < to->argc; i++)
                argv[n++] = to->argv[i];
        argv[n] = NULL;
        execvp(python, argv);
        return afz_fail(AFZ_EXIT_USAGE,
                        "convert: Parquet is read by Python with pyarrow, and %s cannot be "
                        "started: %s; --python names another",
                        python, strerror(errno));
}

static int run_convert(const struct afz_invocation *invocation)
{
        const struct convert_options *o = invocation->options;
        struct arguments to = {.argc = 1};
        uint64_t height = 0, width = 0;
        char converter[1024];
        int status = check(o);
        if (status != 0)
                return status;
        if (o->resize && parse_resize(o->resize, &height, &width) < 0)
                return afz_fail(AFZ_EXIT_USAGE,
                                "convert: --resize is a height and a width: 224x320, or 224 for "
                                "both");
        if (afz_find_part(&afz_part_converter, converter, sizeof converter) < 0)
                return afz_fail(AFZ_EXIT_OWN,
                                "convert: antifreeze-convert is not installed beside this program "
                                "or in " AFZ_LIBEXEC_DIR);
        give(&to, invocation, height, width);
        if (to.is_short)
                return afz_fail(AFZ_EXIT_OWN, "convert: no memory");
        if (is_parquet(invocation->argv[0], o->format))
                return run_python(o->python, &to, converter);
        to.argv[0] = converter;
        execv(converter, to.argv);
        return afz_fail(AFZ_EXIT_OWN, "convert: %s: %s", converter, strerror(errno));
}

static const struct afz_operand convert_operands[] = {
        {.name = "SOURCE", .complete = AFZ_COMPLETE_FILE},
        {.name = "DEST", .complete = AFZ_COMPLETE_FILE},
        {0},
};

static const struct afz_option convert_rows[] = {
        {.name = "labels",
         .letter = 'l',
         .arg = "PATH",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct convert_options, labels),
         .complete = AFZ_COMPLETE_FILE,
         .help = "A file that has a label for each sample, in the same order."},
        {.name = "format",
         .arg = "NAME",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct convert_options, format),
         .help = "What SOURCE is, where it does not say so itself: raw, tokens, parquet."},
        {.name = "details",
         .arg = "JSON",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct convert_options, details),
         .help = "What the format has to be told: '{\"dtype\": \"f4\", \"shape\": [3, 64, 64]}'."},
        {.name = "resize",
         .arg = "HEIGHTxWIDTH",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct convert_options, resize),
         .help = "The size that all pictures get: the middle of each, scaled."},
        {.name = "float",
         .offset = offsetof(struct convert_options, is_float),
         .help = "Pictures as numbers from 0 to 1, channels first: four times as large as bytes."},
        {.name = "mean",
         .arg = "R,G,B",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct convert_options, mean),
         .help = "With --float: what is taken off each channel."},
        {.name = "deviation",
         .arg = "R,G,B",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct convert_options, deviation),
         .help = "With --float: what each channel is then divided by."},
        {.name = "budget",
         .letter = 'b',
         .arg = "SIZE",
         .type = AFZ_OPTION_SIZE,
         .offset = offsetof(struct convert_options, budget_bytes),
         .min = 1 * MIB,
         .default_text = "256M",
         .help = "How much memory it may use."},
        {.name = "chunk",
         .arg = "SIZE",
         .type = AFZ_OPTION_SIZE,
         .offset = offsetof(struct convert_options, chunk_bytes),
         .min = 1,
         .max = 1024 * MIB,
         .default_text = "1M",
         .help = "What is read and unpacked at once, before it is packed."},
        {.name = "shard",
         .arg = "SIZE",
         .type = AFZ_OPTION_SIZE,
         .offset = offsetof(struct convert_options, shard_bytes),
         .min = 1,
         .default_text = "64M",
         .help = "What goes into one file, before it is packed."},
        {.name = "level",
         .arg = "N",
         .type = AFZ_OPTION_U64,
         .offset = offsetof(struct convert_options, level),
         .max = 19,
         .default_text = "3",
         .help = "How hard zstd tries, up to 19; it is read equally fast. 0: nothing is packed."},
        {.name = "python",
         .arg = "PATH",
         .type = AFZ_OPTION_STRING,
         .offset = offsetof(struct convert_options, python),
         .complete = AFZ_COMPLETE_FILE,
         .default_text = "python3",
         .help = "For Parquet: the Python that has pyarrow."},
        {.name = "dry-run",
         .letter = 'n',
         .offset = offsetof(struct convert_options, dry_run),
         .help = "Say what it would take on disk and whether it fits; write nothing."},
        {.name = "force",
         .letter = 'f',
         .offset = offsetof(struct convert_options, force),
         .help = "Make DEST anew, though it was made or begun from something else."},
        {.name = "json",
         .letter = 'j',
         .offset = offsetof(struct convert_options, json),
         .help = "The result as one JSON object."},
        {.name = "quiet",
         .letter = 'q',
         .offset = offsetof(struct convert_options, quiet),
         .help = "Say nothing but errors."},
        {0},
};

static const struct convert_options convert_defaults = {
        .budget_bytes = 256 * MIB,
        .chunk_bytes = 1 * MIB,
        .shard_bytes = 64 * MIB,
        .level = 3,
        .python = "python3",
};

static const struct afz_example convert_examples[] = {
        {"antifreeze convert train.npy --labels y.npy train.zarr",
         "An array and its labels; then antifreeze.Loader(\"train.zarr\", ...)."},
        {"antifreeze convert photos --resize 224x224 photos.zarr",
         "A folder of pictures in folders of classes, decoded once."},
        {"antifreeze convert --dry-run /mnt/share/train.tar train.zarr",
         "What it would take, and whether there is room."},
        {"antifreeze convert --format tokens --details '{\"dtype\": \"u2\", \"length\": 1024, "
         "\"overlap\": 1}' tokens.bin tokens.zarr",
         "Packed tokens, 1024 and one more a sample."},
        {"antifreeze convert --details '{\"columns\": [\"a\", \"b\"]}' --labels y table.parquet "
         "table.zarr",
         "Columns of Parquet: two as an array, and one as labels."},
        {0},
};

const struct afz_command afz_command_convert = {
        .name = "convert",
        .summary = "make a fast local copy of a dataset for the loader",
        .description =
                "Reads SOURCE once, in any format that the loader reads (npy, npz, IDX, Zarr, CSV, "
                "a "
                "folder or tar of pictures, records, tokens; Parquet by Python's pyarrow), and "
                "writes DEST: a folder with Zarr v3 arrays in shards, packed with zstd and summed "
                "with crc32c, "
                "which the loader, zarr-python and others read. Pictures are decoded once and for "
                "all; what is drawn at random belongs into the training and is not done here.\n\n"
                "It stays within its budget of memory whatever the size of SOURCE. When it is "
                "stopped or killed, the same command goes on where it was, and what comes out is "
                "the same, byte by byte. Until it is whole, DEST is not taken for an array by "
                "anyone; one that is whole already is left as it is.",
        .operands = convert_operands,
        .options = convert_rows,
        .examples = convert_examples,
        .options_size = sizeof(struct convert_options),
        .defaults = &convert_defaults,
        .run = run_convert,
};
