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

struct afz_site_count {
        uint64_t live_bytes, blocks, total_bytes, early_bytes, counted_bytes;
};

struct afz_site {
        uint64_t id; /* a hash of all that follows; of number 0: 0 */
        enum afz_site_kind kind;
        unsigned frames;
        struct afz_site_frame *frame; /* innermost first */

        struct afz_site_count now;
        unsigned processes;
        uint64_t gone_bytes; /* of `total`: by processes that are gone */

        /* For who records. */
        bool recorded, named;
        struct afz_site_count put;
        uint64_t put_ns, told_ns;
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

/* A look: begin, what each process has at a site, and then the sums stand. */
void afz_sites_begin(struct afz_sites *sites);
void afz_sites_add(struct afz_sites *sites, uint32_t number, const struct afz_site_count *count);
void afz_sites_gone(struct afz_sites *sites, uint32_t number, uint64_t total_bytes);

#endif
