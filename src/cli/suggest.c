#include "suggest.h"

#include <string.h>

static int min_int(int a, int b)
{
        return a < b ? a : b;
}

int afz_edit_distance(const char *a, const char *b)
{
        int row[3][AFZ_SUGGEST_WORD_MAX + 1];
        size_t a_len = strlen(a), b_len = strlen(b);
        int *before = row[0], *above = row[1], *here = row[2];

        if (a_len > AFZ_SUGGEST_WORD_MAX || b_len > AFZ_SUGGEST_WORD_MAX)
                return -1;
        for (size_t j = 0; j <= b_len; j++)
                here[j] = (int)j;
        for (size_t i = 1; i <= a_len; i++) {
                int *spare = before;

                before = above;
                above = here;
                here = spare;
                here[0] = (int)i;
                for (size_t j = 1; j <= b_len; j++) {
                        here[j] = above[j - 1] + (a[i - 1] != b[j - 1]);
                        here[j] = min_int(here[j], min_int(above[j], here[j - 1]) + 1);
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                here[j] = min_int(here[j], before[j - 2] + 1);
                }
        }
        return here[b_len];
}

/* One slip, and one more for every four letters: "wtach" is offered "watch", but "ps" is not
 * offered "runs". A beginning of two letters or more counts as one slip, since that is how people
 * type who hope for abbreviations. */
static int slips(const char *typed, const char *word)
{
        size_t len = strlen(typed);
        int distance = afz_edit_distance(typed, word);

        if (len >= 2 && distance > 1 && strncmp(typed, word, len) == 0)
                distance = 1;
        if (distance < 0 || distance > 1 + (int)len / 4)
                return -1;
        return distance < (int)len ? distance : -1;
}

void afz_suggestion_offer(struct afz_suggestion *suggestion, const char *word)
{
        int distance = slips(suggestion->typed, word);

        if (distance < 0 || (suggestion->best && suggestion->distance <= distance))
                return;
        suggestion->best = word;
        suggestion->distance = distance;
}
