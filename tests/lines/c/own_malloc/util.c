#include "util.h"
#include <stdio.h>
#include <stdlib.h>

void *must_have(size_t bytes)
{
        void *p = malloc(bytes); /* the line: strictly, it is here */

        if (!p) {
                fprintf(stderr, "out of memory\n");
                abort();
        }
        return p;
}
