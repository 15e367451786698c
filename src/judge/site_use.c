#include "site_use.h"

#include <ctype.h>
#include <string.h>

#include "span.h"

/* ---- frames: "train.py:12 in Net.forward()", "train.py:3", "relu() in libtorch_cpu.so" ---- */

struct frame {
        char text[320];
        char file[128];     /* of a source file; "": native without lines */
        char function[112]; /* "Net.forward"; "": not known */
        bool user;          /* it is the line that the site is called by */
};

static void put(char *ret, size_t cap, const char *text, size_t n)
{
        n = n < cap ? n : cap - 1;
        memcpy(ret, text, n);
        ret[n] = '\0';
}

/* The next line of a stack; false at its end. */
static bool next_frame(const char **stack, const struct afz_track *site, struct frame *ret)
{
        size_t n = strcspn(*stack, "\n");
        if (n == 0)
                return false;
        *ret = (struct frame){0};
        put(ret->text, sizeof ret->text, *stack, n);
        *stack += n + ((*stack)[n] == '\n');
        ret->user = strcmp(ret->text, site->name) == 0;
        const char *in = strstr(ret->text, " in ");
        size_t head = in ? (size_t)(in - ret->text) : strlen(ret->text);
        size_t digits = 0;
        while (digits < head && isdigit((unsigned char)ret->text[head - digits - 1]))
                digits++;
        bool has_line = digits > 0 && digits < head && ret->text[head - digits - 1] == ':';
        const char *function = has_line ? in ? in + 4 : "" : in ? ret->text : "";
        if (has_line)
                put(ret->file, sizeof ret->file, ret->text, head - digits - 1);
        put(ret->function, sizeof ret->function, function, strcspn(function, "("));
        return true;
}

/* ---- what libraries call things ---- */

/* The first frame, from the allocation outwards, that one of these fits tells; of those that fit,
 * the uppermost. NULL: any. */
static const struct {
        const char *file;     /* as stacks have it: a path within the package; "x/": all below it */
        const char *function; /* its last part: "forward" of "Net.forward" */
        enum afz_site_use use;
} library[] = {
        /* torch: modules that make their parameters, optimizers, a model that is moved */
        {NULL, "reset_parameters", AFZ_USE_MODEL},
        {NULL, "load_state_dict", AFZ_USE_MODEL},
        {NULL, "from_pretrained", AFZ_USE_MODEL},
        {NULL, "load_file", AFZ_USE_MODEL}, /* safetensors */
        {"torch/serialization.py", NULL, AFZ_USE_MODEL},
        {NULL, "_init_group", AFZ_USE_MODEL},
        {NULL, "register_parameter", AFZ_USE_MODEL},
        {"torch/optim/", NULL, AFZ_USE_MODEL},
        {"torch/nn/modules/", "_apply", AFZ_USE_MODEL},
        {"torch/nn/modules/", "__init__", AFZ_USE_MODEL},
        /* Keras: the same */
        {NULL, "add_weight", AFZ_USE_MODEL},
        {NULL, "add_variable", AFZ_USE_MODEL},
        {NULL, "add_variable_from_reference", AFZ_USE_MODEL},
        {"keras/src/optimizers/", NULL, AFZ_USE_MODEL},
        {NULL, "load_weights", AFZ_USE_MODEL},
        /* data on its way in */
        {"tensorflow/python/data/ops/from_tensor_slices_op.py", NULL, AFZ_USE_DATA},
        {"tensorflow/python/data/ops/from_tensors_op.py", NULL, AFZ_USE_DATA},
        {"keras/src/trainers/data_adapters/array_data_adapter.py", NULL, AFZ_USE_DATA},
        {"keras/src/utils/image_dataset_utils.py", NULL, AFZ_USE_DATA},
        {"numpy/lib/_npyio_impl.py", NULL, AFZ_USE_DATA},
        {"numpy/lib/npyio.py", NULL, AFZ_USE_DATA},
        {"pandas/io/", NULL, AFZ_USE_DATA},
        {"pyarrow/", NULL, AFZ_USE_DATA},
        {"PIL/", NULL, AFZ_USE_DATA},
        {"pickle.py", NULL, AFZ_USE_DATA},
        {"csv.py", NULL, AFZ_USE_DATA},
        {"json/decoder.py", "raw_decode", AFZ_USE_DATA},
        {NULL, "tensorflow::data", AFZ_USE_DATA},
        /* a step */
        {"torch/nn/modules/module.py", "_call_impl", AFZ_USE_STEP},
        {"torch/nn/functional.py", NULL, AFZ_USE_STEP},
        {"torch/_tensor.py", "backward", AFZ_USE_STEP},
        {"torch/autograd/graph.py", "_engine_run_backward", AFZ_USE_STEP},
        {"keras/src/layers/layer.py", "__call__", AFZ_USE_STEP},
        {"tensorflow/python/eager/backprop.py", NULL, AFZ_USE_STEP},
        {"trainer.py", "train_step", AFZ_USE_STEP},
        {"trainer.py", "train_on_batch", AFZ_USE_STEP},
        {"trainer.py", "one_step_on_data", AFZ_USE_STEP},
        {NULL, "training_step", AFZ_USE_STEP},
};

/* TensorFlow makes every tensor so, whatever it is for: it tells only where nothing further out
 * does. */
static const char *const operation[] = {
        "tensorflow::ThreadPoolDevice::Compute",
        "tensorflow::ExecutorState",
        "tensorflow::SingleThreadedExecutorImpl",
};

/* "Net.forward" is "forward"; a C++ name is what it begins with ("tensorflow::data"). */
static bool is_called(const char *function, const char *name)
{
        size_t n = strlen(function), k = strlen(name);
        if (strstr(name, "::"))
                return afz_str_starts(function, name) || strstr(function, name);
        return n >= k && strcmp(function + n - k, name) == 0 &&
               (n == k || function[n - k - 1] == '.');
}

/* "torch/optim/adam.py" is "torch/optim/", "python3.11/csv.py" is "csv.py"; a user's own csv.py, of
 * which no folder is told, is none. */
static bool is_file(const char *file, const char *row)
{
        size_t n = strlen(file), k = strlen(row);
        if (row[k - 1] == '/')
                return afz_str_starts(file, row);
        return n >= k && strcmp(file + n - k, row) == 0 && strchr(file, '/') &&
               (n == k || file[n - k - 1] == '/');
}

static enum afz_site_use by_library(const struct frame *f)
{
        for (unsigned i = 0; i < sizeof library / sizeof *library; i++)
                if ((!library[i].file || is_file(f->file, library[i].file)) &&
                    (!library[i].function || is_called(f->function, library[i].function)))
                        return library[i].use;
        return AFZ_USE_OTHER;
}

static bool is_operation(const struct frame *f)
{
        for (unsigned i = 0; i < sizeof operation / sizeof *operation; i++)
                if (!f->file[0] && is_called(f->function, operation[i]))
                        return true;
        return false;
}

/* ---- what people call things ---- */

/* A name is words: "load_images", "ImageNetDataset.__init__", "data::read_all". One of them that
 * begins like this tells; what stands further up goes first. */
static const struct {
        const char *word;
        enum afz_site_use use;
} habit[] = {
        {"load", AFZ_USE_DATA},    {"read", AFZ_USE_DATA},       {"data", AFZ_USE_DATA},
        {"corpus", AFZ_USE_DATA},  {"parse", AFZ_USE_DATA},      {"sample", AFZ_USE_DATA},
        {"fetch", AFZ_USE_DATA},   {"prepare", AFZ_USE_DATA},    {"preproc", AFZ_USE_DATA},
        {"picture", AFZ_USE_DATA}, {"photo", AFZ_USE_DATA},      {"video", AFZ_USE_DATA},
        {"audio", AFZ_USE_DATA},   {"document", AFZ_USE_DATA},   {"image", AFZ_USE_DATA},
        {"record", AFZ_USE_DATA},  {"tokeniz", AFZ_USE_DATA},    {"replay", AFZ_USE_DATA},
        {"weight", AFZ_USE_MODEL}, {"param", AFZ_USE_MODEL},     {"optim", AFZ_USE_MODEL},
        {"adam", AFZ_USE_MODEL},   {"forward", AFZ_USE_STEP},    {"backward", AFZ_USE_STEP},
        {"loss", AFZ_USE_STEP},    {"activation", AFZ_USE_STEP}, {"grad", AFZ_USE_STEP},
        {"step", AFZ_USE_STEP},    {"call", AFZ_USE_STEP},       {"layer", AFZ_USE_LAYER},
        {"block", AFZ_USE_LAYER},
};

/* What classes are called that are layers. */
static const char *const layer_class[] = {
        "layer", "block", "module", "attention", "encoder", "decoder", "embed", "mask",   "head",
        "norm",  "conv",  "net",    "model",     "mlp",     "lstm",    "gru",   "former", "pool",
};

/* Whether one of the words of a name begins so, whatever its case. */
static bool has_word(const char *name, const char *word)
{
        size_t k = strlen(word);
        for (size_t i = 0; name[i]; i++) {
                bool first =
                        i == 0 || !isalpha((unsigned char)name[i - 1]) ||
                        (isupper((unsigned char)name[i]) && islower((unsigned char)name[i - 1]));
                if (first && strncasecmp(name + i, word, k) == 0)
                        return true;
        }
        return false;
}

static enum afz_site_use by_habit(const char *name)
{
        for (unsigned i = 0; i < sizeof habit / sizeof *habit; i++)
                if (has_word(name, habit[i].word))
                        return habit[i].use;
        return AFZ_USE_OTHER;
}

/* Whether it makes an object: what it allocates lives as long as that. */
static bool makes_object(const char *function)
{
        return is_called(function, "__init__") || is_called(function, "build");
}

static bool is_layer(const char *function)
{
        for (unsigned i = 0; i < sizeof layer_class / sizeof *layer_class; i++)
                if (has_word(function, layer_class[i]))
                        return true;
        return false;
}

static bool is_python(const struct frame *f)
{
        size_t n = strlen(f->file);
        return (n > 3 && strcmp(f->file + n - 3, ".py") == 0) || f->file[0] == '<';
}

/* A model has many layers, and so many blocks of one line; a data set has few: to learn, to try,
 * and to test. And what is small is nobody's buffer. */
#define LAYERS_LEAST 4
#define BUFFER_BYTES (8 << 20)

/* Whether a line made many large tensors, as where it makes layers. */
static bool makes_many(const struct afz_track *site)
{
        const struct afz_column *live = afz_track_column(site, AFZ_SITE_LIVE);
        int64_t bytes, blocks;
        return afz_column_most(live, 0, UINT32_MAX, &bytes) &&
               afz_column_most(afz_track_column(site, AFZ_SITE_BLOCKS), 0, UINT32_MAX, &blocks) &&
               blocks >= LAYERS_LEAST && bytes / blocks >= BUFFER_BYTES;
}

/* The line that the site is called by, and what called it. In Python, a name says "layer" only of
 * where one is made. */
static enum afz_site_use by_user(const struct frame *f, const char *rest,
                                 const struct afz_track *site, bool of_layers)
{
        enum afz_site_use use = by_habit(f->function);
        struct frame outer;
        if (!is_python(f) || (use != AFZ_USE_LAYER && use != AFZ_USE_OTHER))
                return use;
        if (!makes_object(f->function))
                return AFZ_USE_OTHER;
        if (is_layer(f->function) || is_called(f->function, "build"))
                return AFZ_USE_LAYER;
        /* A part of something larger that is made: before Python 3.11 no class is known. And what
         * keeps a tensor of TensorFlow is a layer, whatever it is called: data are arrays, or in a
         * pipeline. In torch, one that is made many times is. */
        bool has_outer = next_frame(&rest, site, &outer);
        if (has_outer && by_habit(outer.function) == AFZ_USE_DATA)
                return AFZ_USE_OTHER;
        return of_layers || (has_outer && makes_object(outer.function)) ? AFZ_USE_LAYER
                                                                        : AFZ_USE_OTHER;
}

/* Who called that line, and so what it is for. In Python, a layer is told by where it is made. */
static enum afz_site_use by_caller(const struct frame *f)
{
        enum afz_site_use use = by_habit(f->function);
        return use == AFZ_USE_LAYER && is_python(f) ? AFZ_USE_OTHER : use;
}

/* Whether the line imports something, whatever the module does as it is made. Who imports the
 * user's own module, further out, does not say what that allocates. */
static bool is_import(const char *stack, const struct afz_track *site)
{
        struct frame f;
        while (next_frame(&stack, site, &f) && !f.user)
                if (afz_str_starts(f.file, "<frozen importlib"))
                        return true;
        return false;
}

static enum afz_site_use by_stack(const char *stack, const struct afz_track *site)
{
        enum afz_site_use use = AFZ_USE_OTHER, otherwise = AFZ_USE_OTHER;
        bool inner = true, torch = false;
        struct frame f;
        while (use == AFZ_USE_OTHER && next_frame(&stack, site, &f)) {
                if (!inner && afz_str_starts(f.file, "<frozen importlib"))
                        break;
                if (is_operation(&f))
                        otherwise = AFZ_USE_RESULT;
                torch = torch || afz_str_starts(f.function, "c10::") ||
                        afz_str_starts(f.function, "at::");
                use = by_library(&f);
                if (use == AFZ_USE_OTHER && (f.user || !inner))
                        use = f.user ? by_user(&f, stack, site,
                                               otherwise != AFZ_USE_OTHER ||
                                                       (torch && makes_many(site)))
                                     : by_caller(&f);
                inner = inner && !f.user;
        }
        return use == AFZ_USE_OTHER ? otherwise : use;
}

/* What the other stacks of a line say, for one that shows nothing but the line. */
static enum afz_site_use by_others(const struct afz_flight *flight, const struct afz_track *site)
{
        enum afz_site_use use = AFZ_USE_OTHER;
        const struct afz_track *other;
        for (size_t at = 0;
             use == AFZ_USE_OTHER && (other = afz_flight_next(flight, AFZ_KIND_SITE, &at));)
                if (afz_site_same_line(other, site))
                        use = by_stack(afz_site_stack(flight, other->subject.id), other);
        return use;
}

enum afz_site_use afz_site_use_of(const struct afz_flight *flight, const struct afz_track *site)
{
        const char *stack = afz_site_stack(flight, site->subject.id);
        if (strcmp(site->name, "imports of modules") == 0 || is_import(stack, site))
                return AFZ_USE_IMPORT;
        enum afz_site_use use = by_stack(stack, site);
        return use == AFZ_USE_OTHER && !strchr(stack, '\n') ? by_others(flight, site) : use;
}

bool afz_site_is_pool(const struct afz_flight *flight, const struct afz_track *site)
{
        return strstr(afz_site_stack(flight, site->subject.id), "BFCAllocator") != NULL;
}

/* Of all that lines held: what is more than this is not code alone. */
#define CODE_MOST 0.4

double afz_site_code_bytes(const struct afz_flight *flight, const struct afz_site_top *top)
{
        double code = top->seen_bytes;
        for (unsigned i = 0; i < top->rows; i++)
                if (afz_site_use_of(flight, top->row[i].track) != AFZ_USE_IMPORT)
                        code -= top->row[i].bytes;
        return code < CODE_MOST * top->seen_bytes ? code : CODE_MOST * top->seen_bytes;
}
