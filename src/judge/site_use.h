#ifndef AFZ_SITE_USE_H
#define AFZ_SITE_USE_H
/* What a line allocates for, as far as its stack tells: by the names of files and functions in it,
 * from the allocation outwards. Names are no proof; a judge asks for other evidence, too. Pure.
 */
#include "site_top.h"

enum afz_site_use {
        AFZ_USE_OTHER,  /* nothing tells */
        AFZ_USE_IMPORT, /* code: what importing a module takes */
        AFZ_USE_DATA,   /* samples: read, parsed, converted to be fed */
        AFZ_USE_MODEL,  /* parameters, and what the optimizer keeps of them */
        AFZ_USE_LAYER,  /* made where a layer is made, and is no parameter */
        AFZ_USE_STEP,   /* of a step: forward, loss, backward */
        AFZ_USE_RESULT, /* what an operation of TensorFlow gave, in a step or not */
        AFZ_USES
};

/* Of a track of kind SITE. */
enum afz_site_use afz_site_use_of(const struct afz_flight *flight, const struct afz_track *site);

/* TensorFlow takes memory in ever larger pieces, and gives it out by itself: who asked for a piece
 * is chance, and need not keep any of it. */
bool afz_site_is_pool(const struct afz_flight *flight, const struct afz_track *site);

/* Of what lines held: the code of modules, and the crumbs that no line is told of. What frameworks
 * take before anything happens, some 250 to 400 MB; no more than two fifths of all. */
double afz_site_code_bytes(const struct afz_flight *flight, const struct afz_site_top *top);

#endif
