#include "count_of.h"
#include "sense.h"
#include "window.h"

const struct afz_sense *const afz_sense_table[] = {
        &afz_sense_host,    &afz_sense_vm,     &afz_sense_psi,  &afz_sense_cpu,
        &afz_sense_job,     &afz_sense_cgroup, &afz_sense_disk, &afz_sense_net,
        &afz_sense_thermal, &afz_sense_kmsg,   &afz_sense_gpu,
};

_Static_assert(AFZ_COUNT_OF(afz_sense_table) < AFZ_WINDOW_SOURCES,
               "the window has a place for each sense, and one for ourselves");

const unsigned afz_sense_count = AFZ_COUNT_OF(afz_sense_table);
