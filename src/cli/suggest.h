#ifndef AFZ_SUGGEST_H
#define AFZ_SUGGEST_H
/* "Did you mean": how far two words are apart, and which of several is near enough to be worth
 * offering. Pure.
 */

enum { AFZ_SUGGEST_WORD_MAX = 32 }; /* longer words are compared with nothing */

/* The least number of letters to insert, delete, replace or swap with their neighbour to turn a
 * into b (no letter is touched twice). -1 if one of them is longer than AFZ_SUGGEST_WORD_MAX. */
int afz_edit_distance(const char *a, const char *b);

/* The best candidate so far. Start with {.typed = ...} and offer every word; the first of equals
 * wins. */
struct afz_suggestion {
        const char *typed;
        const char *best; /* NULL: nothing is near */
        int distance;
};

void afz_suggestion_offer(struct afz_suggestion *suggestion, const char *word);

#endif
