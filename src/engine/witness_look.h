#ifndef AFZ_WITNESS_LOOK_H
#define AFZ_WITNESS_LOOK_H
/* What the witness does in its process. Used by witness.c alone. */
#include <stdatomic.h>

#include "witness.h"

struct afz_witness_text {
        int64_t code;
        char text[AFZ_WITNESS_TEXT_CAP];
};

/* First without native frames, which take longest and are likeliest to fail; then with them. The
 * last that is whole counts. */
enum { AFZ_WITNESS_ROUNDS = 2 };

/* In memory that witness and scout share. */
struct afz_witness_found {
        _Atomic uint32_t rounds; /* that are whole */
        struct {
                uint32_t count;
                struct afz_witness_text text[AFZ_WITNESS_TEXTS];
        } round[AFZ_WITNESS_ROUNDS];
};

void afz_witness_look(const struct afz_env *env, const pid_t *pids, size_t n, bool frozen,
                      struct afz_witness_found *found);

#endif
