/* getline() makes a new buffer each time, since the pointer is set to NULL before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *text(void)
{
        FILE *file = tmpfile();

        for (int i = 0; i < 400; i++) {
                for (int j = 0; j < 3000; j++)
                        fputc('a' + (i + j) % 26, file);
                fputc('\n', file);
        }
        return file;
}

int main(void)
{
        FILE *file = text();
        unsigned long letters = 0;

        for (int pass = 0; pass < 200; pass++) {
                rewind(file);
                for (int n = 0; n < 400; n++) {
                        char *line = NULL;
                        size_t room = 0;
                        ssize_t got = getline(&line, &room, file); /* the line */

                        letters += got > 0 ? (unsigned long)got + (line[0] == 'b') : 0;
                        if (n % 10 == 0)
                                usleep(3000);
                }
                printf("pass %d: %lu letters\n", pass, letters);
                fflush(stdout);
        }
        return 0;
}
