/* Linked with all that it needs: the loader has nothing to say here. */
#include <stdlib.h>

int main(void)
{
        char *at = malloc(8 << 20);
        if (!at)
                return 1;
        ((volatile char *)at)[0] = 1;
        free(at);
        return 0;
}
