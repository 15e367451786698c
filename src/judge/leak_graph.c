/* Does what grew belong to a graph of gradients? A list of losses keeps, with each of them, every
 * node of the graph behind it and every tensor that a node saved for the way back. It shows in the
 * native stacks: nodes are made by the autograd engine itself, tensors by what allocates tensors.
 */
#include <string.h>

#include "count_of.h"
#include "leak_growth.h"
#include "span.h"

/* An operation counts as one whose results are kept from so much of the growth on, and if it rose
 * in so many of AFZ_SITE_PARTS: what a step needs while it runs may be there at the last look. */
#define TENSOR_SHARE 0.05
#define TENSOR_PARTS 6

/* Frames that say nothing: the C++ library's operator new, and code without a name. */
static bool is_plumbing(const char *frame)
{
        return strncmp(frame, "lib", 3) == 0 || strncmp(frame, "operator new", 12) == 0 ||
               strncmp(frame, "std::", 5) == 0 || strncmp(frame, "void* ", 6) == 0;
}

static bool begins_with_any(const char *frame, const char *const *word, unsigned words)
{
        for (unsigned i = 0; i < words; i++)
                if (afz_str_starts(frame, word[i]))
                        return true;
        return false;
}

static bool has_any(const char *stack, const char *const *word, unsigned words)
{
        for (unsigned i = 0; i < words; i++)
                if (strstr(stack, word[i]))
                        return true;
        return false;
}

/* The innermost frame that says something is the engine's own: a node, or an edge of it. */
static bool is_node(const char *stack)
{
        static const char *const engine[] = {"torch::autograd::", "tensorflow::eager::GradientTape",
                                             "tensorflow::eager::TapeTensor"};
        static const char *const binding[] = {"torch::autograd::THP", "torch::autograd::utils::"};
        while (*stack && is_plumbing(stack)) {
                stack += strcspn(stack, "\n");
                stack += *stack == '\n';
        }
        return begins_with_any(stack, engine, AFZ_COUNT_OF(engine)) &&
               !begins_with_any(stack, binding, AFZ_COUNT_OF(binding));
}

/* The result of an operation that is recorded for the way back. What the way back itself makes are
 * gradients: they stay with the weights, not with a graph. */
static bool is_recorded(const char *stack)
{
        static const char *const on[] = {"torch::autograd::VariableType::",
                                         "torch::autograd::SavedVariable"};
        static const char *const back[] = {"torch::autograd::Engine::", "_engine_run_backward",
                                           "torch::autograd::generated::"};
        return has_any(stack, on, AFZ_COUNT_OF(on)) && !has_any(stack, back, AFZ_COUNT_OF(back));
}

/* TensorFlow does not show whether a tape records. But what lies between the operations of one line
 * is kept by nothing else: of several lines, a program may keep the results itself. */
static bool is_eager_at(const char *stack, const struct afz_track *site,
                        const struct afz_track *line)
{
        static const char *const eager[] = {"tensorflow::EagerExecute", "TFE_Py_"};
        return has_any(stack, eager, AFZ_COUNT_OF(eager)) && afz_site_same_line(site, line);
}

void afz_leak_graph_of(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms,
                       const struct afz_site_top *sites, struct afz_leak_graph *ret)
{
        const struct afz_track *site;
        *ret = (struct afz_leak_graph){0};
        for (size_t at = 0; (site = afz_flight_next(flight, AFZ_KIND_SITE, &at));) {
                double bytes = afz_site_grown(site, from_ms, to_ms);
                const char *stack = bytes > 0 ? afz_site_stack(flight, site->subject.id) : "";
                if (is_node(stack)) {
                        ret->node_bytes += bytes;
                } else if (is_recorded(stack) || is_eager_at(stack, site, sites->row[0].track)) {
                        ret->tensor_bytes += bytes;
                        ret->tensors += bytes >= TENSOR_SHARE * sites->seen_bytes &&
                                        afz_site_parts(site, from_ms, to_ms) >= TENSOR_PARTS;
                }
        }
}
