#ifndef AFZ_NAME_ID_H
#define AFZ_NAME_ID_H
/* A subject's number made of its name, for things that the kernel knows by name alone (a network
 * interface, a thermometer). FNV-1a in 32 bits: the same name has the same number in every run, and
 * any reader of JSON can hold it. Among the 64 names that a sense may have, a clash has a chance of
 * one in two million.
 */
#include <stdint.h>

static inline uint64_t afz_name_id(const char *name)
{
        uint32_t h = 2166136261U;
        for (; *name; name++)
                h = (h ^ (unsigned char)*name) * 16777619U;
        return h;
}

#endif
