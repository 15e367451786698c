/* antifreeze-convert: a program of its own, so that the guard needs none of the loader's libraries.
 */
#include <stddef.h>

#include "convert.h"

int main(int argc, char **argv)
{
        return afz_convert_main(argc, argv, NULL);
}
