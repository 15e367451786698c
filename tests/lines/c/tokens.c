/* Counts words; each word is copied for the comparison, and the copy is forgotten. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *word_of(unsigned n)
{
        char text[64];

        snprintf(text, sizeof text, "a-word-of-some-length-number-%u", n % 5000);
        return strdup(text); /* the line */
}

static unsigned long count(unsigned from, unsigned to)
{
        unsigned long found = 0;

        for (unsigned n = from; n < to; n++) {
                char *word = word_of(n);

                found += strchr(word, '7') != NULL;
        }
        return found;
}

int main(void)
{
        unsigned long found = 0;

        for (unsigned page = 0; page < 1600; page++) {
                found += count(page * 4000, (page + 1) * 4000);
                if (page % 50 == 0) {
                        printf("page %u: %lu words\n", page, found);
                        fflush(stdout);
                }
                usleep(20000);
        }
        return 0;
}
