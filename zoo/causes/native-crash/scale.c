/* An extension as people write them: it believes what it is told about the length. */
#include <stddef.h>

void scale(float *values, size_t count, float by);

void scale(float *values, size_t count, float by)
{
        for (size_t i = 0; i < count; i++)
                values[i] *= by;
}
