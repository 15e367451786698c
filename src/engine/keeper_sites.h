#ifndef AFZ_KEEPER_SITES_H
#define AFZ_KEEPER_SITES_H
/* The sites of all processes of a job, added up by their stacks: two processes that stand at the
 * same lines of the same files have one site. A stack is kept in a form that outlives the book it
 * came from, and is given names (keeper_names.h) when its site is first recorded.
 *
 * Number 0 is the site of all that found no room. Allocates as new stacks come, up to a bound.
 */
#include <stdbool.h>
#include <stdint.h>

#include "keeper_book.h"

struct afz_site_frame {
        bool python;
        uint32_t file;     /* number of a name: a Python file, or a module */
        uint32_t function; /* of Python: the same */
        uint64_t at;       /* its line; or the address in the module's file */
};

/* Of several processes all are sums; those of high and low water are bounds then, since the
 * processes need not have stood there at once. */
struct afz_site_count {
        uint64_t live_bytes, blocks, total_bytes, early_bytes, counted_bytes;
        uint64_t high_bytes, low_bytes; /* the most and the least live since the look before */
        /* How old what is live is: sums over blocks of their weight, and of weight times age. Of
         * processes that have steps, the same in steps. */
        double aged_bytes, aged_s, stepped_bytes, stepped_steps;
};

enum {
        AFZ_SITES_MOST = 8192, /* two full books of different stacks; what is beyond goes to 0 */
        AFZ_SITE_PAST = 7,
};

/* What a number stands for. */
enum afz_site_role {
        AFZ_SITE_STACK, /* a stack of a book */
        AFZ_SITE_LINE,  /* a line of the program: the sum of its stacks that are not told apart */
};

struct afz_site {
        uint64_t id; /* a hash of all that follows; of number 0: 0 */
        enum afz_site_role role;
        enum afz_site_kind kind;
        unsigned frames;
        struct afz_site_frame *frame; /* innermost first */

        struct afz_site_count now;
        unsigned processes;
        uint64_t gone_bytes; /* of `total`: by processes that are gone */

        /* For who records. */
        bool recorded, named;
        bool lined;                     /* it is known */
        uint32_t line;                  /* of a stack: the number of its line; 0: it has none */
        uint64_t high_bytes, low_bytes; /* since it was last told */
        struct afz_site_count put;
        uint64_t put_ns, told_ns;
        uint64_t past[AFZ_SITE_PAST];  /* what was live earlier (keeper_answer.h) */
        char name[96];                 /* "train.py:33 in load()" */
        char where[176], function[96]; /* "/home/me/train.py:33", "load" */
};

/* A file of Python, a function, or a module with its build id. */
struct afz_site_name {
        char *text;
        unsigned char build_id[AFZ_BOOK_BUILD_ID];
        uint32_t build_id_bytes;
};

struct afz_sites {
        struct afz_site *site;
        uint32_t sites;
        struct afz_site_name *name;
        uint32_t names;
        struct afz_map *by_id, *by_name; /* numbers of both, by hash */
};

int afz_sites_new(struct afz_sites **ret);
void afz_sites_free(struct afz_sites *sites);

/* The number of a site in a book, made when its stack is new; look->frame must be there. */
uint32_t afz_sites_number(struct afz_sites *sites, const struct afz_book *book,
                          const struct afz_book_look *look);

/* The number of a line, made when it is new: by its frames (one, or before it that of an import
 * which it makes); of what has none, by its name. 0: there is no room. */
uint32_t afz_sites_line(struct afz_sites *sites, enum afz_site_kind kind,
                        const struct afz_site_frame *frame, unsigned frames, const char *name);

/* A look: begin, what each process has at a site, and then the sums stand. */
void afz_sites_begin(struct afz_sites *sites);
void afz_sites_add(struct afz_sites *sites, uint32_t number, const struct afz_site_count *count);
void afz_site_count_add(struct afz_site_count *sum, const struct afz_site_count *count);
void afz_sites_gone(struct afz_sites *sites, uint32_t number, uint64_t total_bytes);

#endif
