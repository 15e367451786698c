#ifndef UTIL_H
#define UTIL_H
#include <stddef.h>

/* Memory, or the end. */
void *must_have(size_t bytes);
#endif
