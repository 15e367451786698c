/* The last 300 frames are kept, older ones make room. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEPT = 300, BYTES = 200 * 1024 };

int main(void)
{
        static char *ring[KEPT];

        for (int n = 0; n < 1200; n++) {
                char *frame = malloc(BYTES);

                memset(frame, n, BYTES);
                free(ring[n % KEPT]);
                ring[n % KEPT] = frame;
                if (n % 25 == 0)
                        printf("frame %d\n", n);
                fflush(stdout);
                usleep(15000);
        }
        return 0;
}
