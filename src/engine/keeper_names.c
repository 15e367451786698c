#include "keeper_names.h"

#include <stdio.h>
#include <string.h>

#include "span.h"
#include "symbols.h"
#include "user_frame.h"

/* One line of a stack. */
struct line {
        const char *file;   /* "": not known */
        const char *module; /* of native code */
        const char *function;
        uint64_t at; /* line; without a file: the address */
        enum afz_frame_owner owner;
        bool python, of_program; /* the second: see program_of() */
};

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash && slash[1] ? slash + 1 : path;
}

/* Of "step.<locals>.inner", "inner"; what has no name of its own (<listcomp>, <lambda>) goes by the
 * function around it. */
static void shorten(const char *function, char *ret, size_t cap)
{
        static const char locals[] = ".<locals>.";
        afz_span_copy(afz_span_str(function), ret, cap);
        for (char *at; (at = strstr(ret, locals));) {
                char *inner = at + strlen(locals);
                if (inner[0] == '<' && !strstr(inner, locals))
                        *at = '\0';
                else
                        memmove(ret, inner, strlen(inner) + 1);
        }
}

/* "ns::load(int, char)" stays short: what is in brackets at its end is left out, names without one
 * ("ns::(anonymous namespace)::load", "operator()") are not. */
static void put_function(const char *function, char *buf, size_t cap)
{
        static const char *const names[] = {"(anonymous namespace)", "operator()"};
        size_t n = 0;
        while (function[n] != '\0' && function[n] != '(') {
                n += strcspn(function + n, "(o");
                if (function[n] == 'o' && strncmp(function + n, names[1], strlen(names[1])) != 0)
                        n++;
                for (unsigned i = 0; i < 2; i++)
                        if (strncmp(function + n, names[i], strlen(names[i])) == 0)
                                n += strlen(names[i]);
        }
        snprintf(buf, cap, "%.*s()", (int)n, function);
}

/* The user's own files go by their name; those of libraries by where they are in the package
 * ("torch/nn/modules/module.py", "python3.11/json/decoder.py") or by their folder, so that a reader
 * of stacks can tell whose code it is (src/view/stacks.h). */
static const char *short_file(const struct line *l)
{
        const char *name = base_name(l->file), *folder = name;
        size_t package = afz_frame_package(l->file);
        if (l->owner != AFZ_FRAME_OF_LIBRARY || name == l->file)
                return name;
        if (l->python && package > 0) {
                folder = l->file + package - 1;
        } else if (l->python && (folder = strstr(l->file, "/lib/python"))) {
                return folder + strlen("/lib/");
        } else {
                folder = name - 1;
        }
        while (folder > l->file && folder[-1] != '/')
                folder--;
        return folder;
}

static void put_line(const struct line *l, char *buf, size_t cap)
{
        char function[112] = "";
        bool named = l->function[0] && l->function[0] != '<'; /* <module>, <listcomp>, <lambda> */
        if (named)
                put_function(l->function, function, sizeof function);
        if (l->file[0] && l->at > 0)
                snprintf(buf, cap, "%s:%llu%s%s", short_file(l), (unsigned long long)l->at,
                         named ? " in " : "", function);
        else if (l->file[0] || named)
                snprintf(buf, cap, "%s%s%s", function, named ? " in " : "",
                         base_name(l->file[0] ? l->file : l->module));
        else if (l->module[0])
                snprintf(buf, cap, "%s+0x%llx", base_name(l->module), (unsigned long long)l->at);
        else
                snprintf(buf, cap, "code that was made at run time");
}

/* Python before native, the user's before libraries': who comes first is who can be told best. A
 * program that is itself an installed package comes after all that the user has elsewhere. */
static int rank_of(const struct line *l)
{
        switch (l->owner) {
        case AFZ_FRAME_OF_USER:
                return l->python ? 6 : 5;
        case AFZ_FRAME_OF_LIBRARY:
                return l->of_program ? 4 : l->python ? 3 : 2;
        default:
                return 1;
        }
}

struct words {
        struct afz_site *site;
        int rank; /* of what the site is called by now */
        char *stack;
        size_t len, last; /* where the last line begins */
};

static void take_line(struct words *w, const struct line *l)
{
        char text[320];
        put_line(l, text, sizeof text);
        /* A comprehension and the function around it read the same. */
        if (w->len > 0 && strcmp(w->stack + w->last, text) == 0)
                return;
        int n = snprintf(w->stack + w->len, AFZ_SITE_STACK_CAP - w->len, "%s%s",
                         w->len > 0 ? "\n" : "", text);
        if (n > 0 && (size_t)n < AFZ_SITE_STACK_CAP - w->len) {
                w->last = w->len + (w->len > 0);
                w->len += (size_t)n;
        }
        w->stack[w->len] = '\0'; /* whole lines only */
        if (rank_of(l) <= w->rank)
                return;
        w->rank = rank_of(l);
        afz_span_copy(afz_span_str(text), w->site->name, sizeof w->site->name);
        snprintf(w->site->where, sizeof w->site->where, "%s:%llu", l->file,
                 l->file[0] ? (unsigned long long)l->at : 0);
        afz_span_copy(afz_span_str(l->function), w->site->function, sizeof w->site->function);
}

static const char *file_at(const struct afz_sites *sites, const struct afz_site *site, unsigned at)
{
        return site->frame[at].python ? sites->name[site->frame[at].file].text : "";
}

/* The folder of the package that was started by its name (python -m, or the script that pip
 * writes): its frame is the outermost but for what started it. "": there is none. */
static struct afz_span program_of(const struct afz_sites *sites, const struct afz_site *site)
{
        bool started = false;
        for (unsigned i = site->frames; i-- > 0;) {
                const char *file = file_at(sites, site, i);
                if (afz_frame_is_start(file))
                        started = true;
                else
                        return (struct afz_span){file, started ? afz_frame_package(file) : 0};
        }
        return (struct afz_span){"", 0};
}

static bool is_in(struct afz_span folder, const char *file)
{
        return folder.n > 0 && strncmp(file, folder.p, folder.n) == 0;
}

/* Code from a text ("<string>") is the user's if they ran it. Libraries make classes so: then the
 * line in them that did says more. */
static enum afz_frame_owner owner_of(const struct afz_sites *sites, const struct afz_site *site,
                                     unsigned at)
{
        const char *file = file_at(sites, site, at);
        enum afz_frame_owner owner = afz_frame_owner_python(file);
        if (owner != AFZ_FRAME_OF_USER || file[0] != '<' || at + 1 >= site->frames ||
            !site->frame[at + 1].python)
                return owner;
        return afz_frame_owner_python(file_at(sites, site, at + 1)) == AFZ_FRAME_OF_USER
                       ? AFZ_FRAME_OF_USER
                       : AFZ_FRAME_OF_RUNTIME;
}

/* What a line's imports hold is told apart from what it holds itself. */
uint32_t afz_site_find_line(struct afz_sites *sites, const struct afz_site *site)
{
        const struct afz_span program = program_of(sites, site);
        const struct afz_site_frame *library = NULL, *own = NULL, *import = NULL;
        for (unsigned i = 0; i < site->frames; i++) {
                const struct afz_site_frame *f = &site->frame[i];
                if (!f->python)
                        continue;
                enum afz_frame_owner owner = owner_of(sites, site, i);
                if (owner == AFZ_FRAME_OF_USER) {
                        const struct afz_site_frame both[] = {import ? *import : *f, *f};
                        return afz_sites_line(sites, site->kind, both, import ? 2 : 1, NULL);
                }
                if (owner == AFZ_FRAME_OF_LIBRARY && !library)
                        library = f;
                if (!own && is_in(program, file_at(sites, site, i)))
                        own = f;
                if (!import && afz_frame_is_import(file_at(sites, site, i)))
                        import = f;
        }
        if (import && !own) /* so deep that who began it is not in the stack any more */
                return afz_sites_line(sites, site->kind, NULL, 0, "imports of modules");
        if (own)
                library = own;
        return library ? afz_sites_line(sites, site->kind, library, 1, NULL) : 0;
}

static void take_python(struct words *w, const struct afz_sites *sites, unsigned at,
                        struct afz_span program)
{
        const struct afz_site_frame *f = &w->site->frame[at];
        const char *file = file_at(sites, w->site, at);
        char function[AFZ_BOOK_TEXT_CAP];
        shorten(sites->name[f->function].text, function, sizeof function);
        take_line(w, &(struct line){
                             .file = file,
                             .module = "",
                             .function = function,
                             .at = f->at,
                             .owner = owner_of(sites, w->site, at),
                             .python = true,
                             .of_program = is_in(program, file),
                     });
}

static void take_native(struct words *w, const struct afz_sites *sites,
                        const struct afz_site_frame *f, struct afz_symbols *symbols)
{
        struct afz_symbol found[AFZ_SYMBOL_INLINES];
        const struct afz_site_name *name = &sites->name[f->file];
        const struct afz_symbol_module module = {name->text, name->build_id, name->build_id_bytes};
        const char *path = f->file ? name->text : "";
        bool quiet = afz_frame_owner_native(path, "", "") == AFZ_FRAME_OF_RUNTIME;
        int n = 0;
        if (symbols && f->file && f->at > 0 && !quiet)
                n = afz_symbols_find(symbols, &module, f->at - 1, found, AFZ_SYMBOL_INLINES);
        for (int i = 0; i < n; i++)
                take_line(w, &(struct line){
                                     .file = found[i].line ? found[i].file : "",
                                     .module = path,
                                     .function = found[i].function,
                                     .at = found[i].line ? found[i].line : f->at,
                                     .owner = afz_frame_owner_native(path, found[i].file,
                                                                     found[i].function),
                             });
        if (n == 0)
                take_line(w, &(struct line){.file = "",
                                            .module = path,
                                            .function = "",
                                            .at = f->at,
                                            .owner = afz_frame_owner_native(path, "", "")});
}

void afz_site_set_name(const struct afz_sites *sites, struct afz_site *site,
                       struct afz_symbols *symbols, char stack[AFZ_SITE_STACK_CAP])
{
        static const char *const unknown[AFZ_SITE_KINDS] = {
                [AFZ_SITE_HEAP] = "places that could not be told",
                [AFZ_SITE_MAP] = "mappings whose places could not be told",
                [AFZ_SITE_OBJECT] = "Python objects whose places could not be told",
                [AFZ_SITE_PINNED] = "pinned memory whose places could not be told",
                [AFZ_SITE_SHARED] = "shared memory whose places could not be told",
        };
        struct words w = {.site = site, .stack = stack};
        const struct afz_span program = program_of(sites, site);
        stack[0] = '\0';
        if (site->id == 0)
                strcpy(site->name, "everywhere else");
        else if (site->frames == 0 && site->role == AFZ_SITE_STACK)
                strcpy(site->name, unknown[site->kind]);
        for (unsigned i = 0; i < site->frames; i++) {
                if (site->frame[i].python)
                        take_python(&w, sites, i, program);
                else
                        take_native(&w, sites, &site->frame[i], symbols);
        }
        site->named = true;
}
