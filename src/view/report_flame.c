/* Memory at its peak as a flame graph that hangs down (an icicle): a box for each line of code, as
 * wide as what was allocated below it, and what it called beneath it. A box is a small SVG of its
 * own, so that texts are cut where it ends and zooming (report_flame.js) is two numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_parts.h"
#include "stacks.h"

enum {
        ROW = 19,         /* pixels from one row to the next */
        BOX = 18,         /* of these, the box */
        BOXES = 1400,     /* at most: beyond it the narrow ones go, then the deepest */
        NAME_BYTES = 160, /* of a line, where it is told in full */
};

static const double least_share = 0.0012; /* of the width: about a pixel */
static const double most_share = 0.004;   /* narrower ones are all that may go for want of room */
static const double read_share = 0.008;   /* what lies deeper than all of these is for the zoom */
static const double label_share = 0.02;   /* less has no room for a word */

static const struct {
        const char *paint, *name; /* class of report.css; what it means */
} owners[AFZ_STACK_OWNERS] = {
        [AFZ_STACK_USER] = {"o1", "the program's own code"},
        [AFZ_STACK_LIBRARY] = {"o2", "libraries"},
        [AFZ_STACK_RUNTIME] = {"o3", "the interpreter and code without names"},
        [AFZ_STACK_REST] = {"o4", "too small to be told apart"},
};

struct node {
        const char *name;
        enum afz_stack_owner owner;
        uint64_t bytes;
        size_t child, next; /* number and one more; 0: none */
};

struct tree {
        struct node *node; /* [0] is the root */
        size_t count;
        bool whole; /* also what lies inside of the interpreter */
};

/* ---- from stacks to a tree ---- */

static size_t child_of(struct tree *t, size_t parent, const char *name, uint64_t site)
{
        size_t *link = &t->node[parent].child;
        while (*link && strcmp(t->node[*link - 1].name, name) != 0)
                link = &t->node[*link - 1].next;
        if (*link == 0) {
                t->node[t->count] = (struct node){
                        .name = name, .owner = site == 0 ? AFZ_STACK_REST : afz_stack_owner(name)};
                *link = ++t->count;
        }
        return *link - 1;
}

static void add(struct tree *t, const struct afz_stack *s)
{
        uint64_t site = s->site->subject.id;
        size_t at = 0;
        bool any = t->whole;
        t->node[0].bytes += s->bytes;
        for (unsigned i = 0; i < s->frames && !any; i++)
                any = afz_stack_owner(s->frame[i]) != AFZ_STACK_RUNTIME;
        for (unsigned i = 0; i < s->frames && any; i++) {
                if (!t->whole && afz_stack_owner(s->frame[i]) == AFZ_STACK_RUNTIME)
                        continue;
                at = child_of(t, at, s->frame[i], site);
                t->node[at].bytes += s->bytes;
        }
        if (!any) { /* nothing of it has a name */
                at = child_of(t, 0, s->site->name, site);
                t->node[at].bytes += s->bytes;
        }
}

static bool make_tree(const struct afz_stacks *all, struct tree *t)
{
        size_t most = 1;
        for (size_t i = 0; i < all->count; i++)
                most += all->stack[i].frames;
        t->node = calloc(most, sizeof *t->node);
        if (!t->node)
                return false;
        t->node[0] = (struct node){.name = "all of it", .owner = AFZ_STACK_REST};
        t->count = 1;
        for (size_t i = 0; i < all->count; i++)
                add(t, &all->stack[i]);
        return true;
}

/* ---- from a tree to a picture ---- */

struct picture {
        struct afz_out *out; /* NULL: it is only counted */
        const struct tree *tree;
        double least;     /* bytes */
        unsigned deepest; /* rows that are drawn at most */
        unsigned boxes;
        unsigned rows; /* down to the last in which something can be read */
};

/* The next larger one of a node's children, after `before`; 0: there is none. Children are few, and
 * a sorted list of them would be one more thing to keep. */
static size_t next_child(const struct tree *t, size_t parent, size_t before)
{
        size_t best = 0;
        for (size_t i = t->node[parent].child; i; i = t->node[i - 1].next) {
                const struct node *n = &t->node[i - 1];
                const struct node *b = before ? &t->node[before - 1] : NULL;
                if (b && (n->bytes > b->bytes || (n->bytes == b->bytes && i <= before)))
                        continue;
                if (!best || n->bytes > t->node[best - 1].bytes)
                        best = i;
        }
        return best;
}

static void put_box(struct picture *p, const struct node *n, double x, double width, unsigned row)
{
        char size[AFZ_REPORT_TEXT_CAP], share[AFZ_REPORT_TEXT_CAP];
        double part = width / 100;
        afz_out_fmt(p->out,
                    "<svg class=\"%s%s\" x=\"%.3f%%\" y=\"%u\" width=\"%.3f%%\" height=\"%d\">"
                    "<title>",
                    row == 0 ? "o4" : owners[n->owner].paint, strlen(n->name) % 2 ? "" : " alt", x,
                    row * ROW, width, BOX);
        afz_report_text(p->out, n->name, NAME_BYTES);
        afz_out_fmt(p->out, "\n%s, %s</title><rect width=\"100%%\" height=\"%d\"/>",
                    afz_report_value(size, AFZ_REPORT_BYTES, (double)n->bytes),
                    afz_report_value(share, AFZ_REPORT_PERCENT, part), BOX);
        if (part >= label_share) {
                afz_out_str(p->out, "<text x=\"5\" y=\"13\">");
                afz_report_text(p->out, n->name, 100);
                afz_out_str(p->out, "</text>");
        }
        afz_out_str(p->out, "</svg>\n");
}

static void put_node(struct picture *p, size_t at, double x, unsigned row)
{
        const struct tree *t = p->tree;
        double all = (double)t->node[0].bytes;
        p->boxes++;
        if (row >= p->rows && (double)t->node[at].bytes >= read_share * all)
                p->rows = row + 1;
        if (p->out)
                put_box(p, &t->node[at], x, 100 * (double)t->node[at].bytes / all, row);
        for (size_t i = next_child(t, at, 0); i; i = next_child(t, at, i)) {
                const struct node *n = &t->node[i - 1];
                if ((double)n->bytes < p->least || row + 1 >= p->deepest ||
                    (!p->out && p->boxes > BOXES))
                        return; /* the others are smaller still */
                put_node(p, i - 1, x, row + 1);
                x += 100 * (double)n->bytes / all;
        }
}

static bool fits(struct picture *p)
{
        p->boxes = p->rows = 0;
        put_node(p, 0, 0, 0);
        return p->boxes <= BOXES;
}

static struct picture measure(const struct tree *t)
{
        double all = (double)t->node[0].bytes;
        struct picture p = {.tree = t, .least = least_share * all, .deepest = AFZ_STACK_FRAMES + 1};
        while (!fits(&p) && p.least < most_share * all)
                p.least *= 1.5;
        while (!fits(&p))
                p.deepest--;
        return p;
}

static void put_tree(struct afz_out *out, const struct tree *t, const char *words)
{
        struct picture p = measure(t);
        p.out = out;
        afz_out_fmt(out,
                    "<svg class=\"flame\" role=\"img\" tabindex=\"0\" width=\"100%%\" "
                    "height=\"%u\" aria-label=\"",
                    p.rows * ROW);
        afz_report_text(out, words, 600);
        afz_out_str(out, "\">\n");
        put_node(&p, 0, 0, 0);
        afz_out_str(out, "</svg>\n");
}

/* ---- the section ---- */

static void words_of(const struct tree *t, const struct afz_stacks *all, char *buf, size_t cap)
{
        char size[AFZ_REPORT_TEXT_CAP], time[AFZ_REPORT_TEXT_CAP];
        int n = snprintf(buf, cap, "Memory by line and caller after %s: %s in all.",
                         afz_report_time(time, all->t_ms),
                         afz_report_value(size, AFZ_REPORT_BYTES, (double)all->bytes));
        size_t at = next_child(t, 0, 0);
        if (at && n > 0 && (size_t)n < cap)
                snprintf(buf + n, cap - (size_t)n, " Most came by way of %.120s: %s.",
                         t->node[at - 1].name,
                         afz_report_value(size, AFZ_REPORT_BYTES, (double)t->node[at - 1].bytes));
}

static void put_head(struct afz_out *out, const struct afz_stacks *all, bool two)
{
        char size[AFZ_REPORT_TEXT_CAP], time[AFZ_REPORT_TEXT_CAP];
        afz_out_str(out, "<section class=\"card\" id=\"flame\"><div class=\"bar\"><h2>Who called "
                         "for it</h2>"
                         "<div class=\"tools needs-js\" hidden>"
                         "<input type=\"search\" id=\"flame-find\" placeholder=\"Find a line\" "
                         "aria-label=\"Find a line\" autocomplete=\"off\" spellcheck=\"false\"/>");
        if (two)
                afz_out_str(out, "<button type=\"button\" id=\"flame-inside\" "
                                 "aria-pressed=\"false\">All frames</button>");
        afz_out_str(out, "<button type=\"button\" id=\"flame-reset\" hidden>Show all of it</button>"
                         "</div></div>\n");
        afz_out_fmt(out,
                    "<p class=\"dim\">The %s that lines of the program held after %s, when that "
                    "was most. On top is where the program begins, beneath each line what it "
                    "called; a box is as wide as the memory that was allocated below it and not "
                    "freed.<span class=\"needs-js\" hidden> Click a box to enlarge it; "
                    "<kbd>←</kbd> <kbd>→</kbd> <kbd>↑</kbd> <kbd>↓</kbd> <kbd>Enter</kbd> "
                    "<kbd>Esc</kbd> do the same.</span></p>\n<p class=\"owners\">",
                    afz_report_value(size, AFZ_REPORT_BYTES, (double)all->bytes),
                    afz_report_time(time, all->t_ms));
        for (int i = 0; i < AFZ_STACK_REST; i++)
                if (i != AFZ_STACK_RUNTIME || two)
                        afz_out_fmt(out, "<span class=\"key %s\">%s</span> ", owners[i].paint,
                                    owners[i].name);
        afz_out_str(out, "</p>\n");
}

void afz_report_flame(struct afz_out *out, const struct afz_report *report)
{
        struct afz_stacks all;
        if (!afz_stacks_at_peak(report->flight, &all))
                return;
        struct tree folded = {0}, whole = {.whole = true};
        char words[400];
        if (make_tree(&all, &folded) && make_tree(&all, &whole)) {
                bool two = folded.count != whole.count;
                words_of(&folded, &all, words, sizeof words);
                put_head(out, &all, two);
                put_tree(out, &folded, words);
                if (two) {
                        afz_out_str(out, "<div id=\"flame-whole\" hidden>\n");
                        put_tree(out, &whole, words);
                        afz_out_str(out, "</div>\n");
                }
                afz_out_str(out, "<p id=\"flame-at\" class=\"needs-js\" aria-live=\"polite\" "
                                 "hidden></p>\n</section>\n");
        }
        free(folded.node);
        free(whole.node);
        afz_stacks_free(&all);
}
