/* antifreeze-convert of a build that has nothing to write Zarr with. */
#include <stdio.h>

int main(void)
{
        fputs("antifreeze: convert was left out of this build: it is there where libzstd-dev and "
              "libjansson-dev are installed\n",
              stderr);
        return 125;
}
