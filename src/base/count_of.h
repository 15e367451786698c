#ifndef AFZ_COUNT_OF_H
#define AFZ_COUNT_OF_H
/* How many elements an array has; not for pointers. */

#define AFZ_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
