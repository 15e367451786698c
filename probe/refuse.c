/* Who can be told that there is no memory. A no is of use where somebody above turns it into an
 * error that Python can catch, and where nobody goes on without the memory or ends the program:
 *
 * - in a thread that runs Python, from any library that is not in the table below;
 * - in all threads while the process is armed, but only by requests for aligned memory, as the
 *   frameworks make them for tensors and look at the answer: what C++ itself asks for ends in an
 *   exception that no one catches there.
 *
 * Asked only when a request does not fit, so it may take some time. */
#include <dlfcn.h>
#include <string.h>

#include "module.h"
#include "probe.h"

enum {
        PLAIN = 1 << AFZ_ASK_PLAIN,
        ALIGNED = 1 << AFZ_ASK_ALIGNED,
        MAPPED = 1 << AFZ_ASK_MAPPED,
        ANY = PLAIN | ALIGNED | MAPPED,
        NAMED = 12, /* frames of a library whose functions are looked up, some ms each */
};

/* Who is never told no. */
static const struct {
        const char *library; /* in the name of its file */
        unsigned how;        /* bits of enum afz_ask */
        const char
                *function; /* in the name of one that is on the stack; NULL: whoever of it asks */
} spared[] = {
        {"openblas", ANY, NULL},                 /* tries for ever */
        {"polars", ANY, NULL},                   /* Rust ends the program */
        {"tokenizers", ANY, NULL},               /* the same */
        {"tiktoken", ANY, NULL},                 /* the same */
        {"tensorflow", PLAIN | MAPPED, NULL},    /* Eigen's rooms to work in: throws with Python's
                                                    lock let go of, or where nobody catches */
        {"tensorflow", ALIGNED, "Mkl"},          /* oneDNN's kernels go on without their output, */
        {"tensorflow", ALIGNED, "ConstantFold"}, /* and so does who folds constants */
};

/* What stands between a program and malloc. */
static const char *const between[] = {"libstdc++", "libc++"};

/* The name of the file that an address lies in; "?": not known. */
static const char *library_of(uint64_t pc)
{
        struct afz_module module;
        if (afz_module_find(NULL, pc, &module) < 0)
                return "?";
        const char *slash = strrchr(module.path, '/');
        return slash ? slash + 1 : module.path;
}

static int is_between(const char *library)
{
        for (unsigned i = 0; i < sizeof between / sizeof *between; i++)
                if (strstr(library, between[i]))
                        return 1;
        return 0;
}

static int is_native(const struct afz_stack *stack, int i)
{
        return i < stack->frames && !(stack->frame[i] & AFZ_FRAME_PYTHON);
}

/* A return address may be the first of the next function. */
static uint64_t code_of(const struct afz_stack *stack, int i)
{
        return stack->frame[i] - 1;
}

static const char *asker(const struct afz_stack *stack, const void *caller)
{
        for (int i = 0; is_native(stack, i); i++) {
                const char *library = library_of(code_of(stack, i));
                if (!is_between(library))
                        return library;
        }
        return library_of((uint64_t)(uintptr_t)caller - 1);
}

static int is_called_by(const struct afz_stack *stack, const char *library, const char *function)
{
        Dl_info about;
        for (int i = 0, named = 0; is_native(stack, i) && named < NAMED; i++) {
                if (!strstr(library_of(code_of(stack, i)), library))
                        continue;
                named++;
                if (dladdr((const void *)(uintptr_t)code_of(stack, i), &about) && /* NOLINT */
                    about.dli_sname && strstr(about.dli_sname, function))
                        return 1;
        }
        return 0;
}

static int is_spared(const struct afz_stack *stack, enum afz_ask how, const void *caller)
{
        const char *library = asker(stack, caller);
        for (unsigned i = 0; i < sizeof spared / sizeof *spared; i++) {
                if (!(spared[i].how & 1u << how))
                        continue;
                if (spared[i].function ? is_called_by(stack, spared[i].library, spared[i].function)
                                       : strstr(library, spared[i].library) != NULL)
                        return 1;
        }
        return 0;
}

int afz_refuse_may(struct afz_book *book, int armed, enum afz_ask how, const void *caller)
{
        struct afz_stack stack;
        if (!(armed && how == AFZ_ASK_ALIGNED) && !afz_stack_has_python(book))
                return 0;
        afz_stack_take(book, AFZ_SITE_HEAP, &stack);
        return !is_spared(&stack, how, caller);
}
