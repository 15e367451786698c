/* Who can be told that there is no memory. A no is of use where somebody above turns it into an
 * error that Python can catch; most code goes on without the memory, or ends the program. So it is
 * given to the few below, who are known to look, and granted to everybody else, known or not:
 *
 * - in a thread that runs Python;
 * - in all threads while the process is armed, for aligned memory, as frameworks take it for
 *   tensors.
 *
 * Who asks is whose code called malloc. C++'s new is nobody here: its exceptions go where nobody
 * may catch them.
 *
 * Asked only when a request does not fit, so it may take some time. */
#include <string.h>

#include "module.h"
#include "probe.h"

enum {
        PLAIN = 1 << AFZ_ASK_PLAIN,
        ALIGNED = 1 << AFZ_ASK_ALIGNED,
        NAMED = 12, /* frames whose functions are looked up, some ms each */
};

/* Who looks at the answer, besides the interpreter itself. */
static const struct listener {
        const char *library; /* its file's name begins so */
        unsigned how;        /* bits of enum afz_ask */
        const char *deaf[2]; /* not where one of its functions with this in its name is at work */
} listeners[] = {
        {"_multiarray_umath.", PLAIN | ALIGNED, {NULL}}, /* NumPy's arrays */
        {"libc10.so", ALIGNED, {NULL}},                  /* PyTorch's tensors */
        /* TensorFlow's tensors. oneDNN's kernels go on without their output, and so does who
         * folds constants. */
        {"libtensorflow", ALIGNED, {"Mkl", "ConstantFold"}},
};

static int is_native(const struct afz_stack *stack, int i)
{
        return i < stack->frames && !(stack->frame[i] & AFZ_FRAME_PYTHON);
}

/* The code of a frame. A return address may be the first of the next function. */
static uint64_t code_of(const struct afz_stack *stack, int i)
{
        return stack->frame[i] - 1;
}

static int is_of(const struct afz_module *module, const struct listener *who)
{
        const char *slash = strrchr(module->path, '/');
        const char *name = slash ? slash + 1 : module->path;
        return strncmp(name, who->library, strlen(who->library)) == 0;
}

static const struct listener *find_listener(const struct afz_stack *stack, enum afz_ask how)
{
        struct afz_module module;
        if (!is_native(stack, 0) || afz_module_find(NULL, code_of(stack, 0), &module) < 0)
                return NULL;
        for (unsigned i = 0; i < sizeof listeners / sizeof *listeners; i++)
                if ((listeners[i].how & 1u << how) && is_of(&module, &listeners[i]))
                        return &listeners[i];
        return NULL;
}

static int is_deaf_in(const struct listener *who, const char *function)
{
        for (unsigned i = 0; i < 2; i++)
                if (who->deaf[i] && function && strstr(function, who->deaf[i]))
                        return 1;
        return 0;
}

static int is_deaf(const struct listener *who, const struct afz_stack *stack)
{
        struct afz_module module;
        for (int i = 0, named = 0; who->deaf[0] && is_native(stack, i) && named < NAMED; i++) {
                uint64_t pc = code_of(stack, i);
                if (afz_module_find(NULL, pc, &module) < 0 || !is_of(&module, who))
                        continue;
                named++;
                if (is_deaf_in(who, afz_module_function(&module, pc)))
                        return 1;
        }
        return 0;
}

int afz_refuse_may(struct afz_book *book, int armed, enum afz_ask how)
{
        struct afz_stack stack;
        if (!(armed && how == AFZ_ASK_ALIGNED) && !afz_stack_has_python(book))
                return 0;
        afz_stack_take(book, AFZ_SITE_HEAP, &stack);
        if (stack.frames > 0 && !is_native(&stack, 0))
                return 1;
        const struct listener *who = find_listener(&stack, how);
        return who && !is_deaf(who, &stack);
}
